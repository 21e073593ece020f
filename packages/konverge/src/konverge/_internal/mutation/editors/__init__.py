"""Editors: the methods that edit one part of an object.

An editor exists for one edit. It works on a plain mapping or list, which `raw` returns for edits without a method.
``set`` and ``set_`` overwrite, ``ensure_`` adds or replaces, and ``remove_`` succeeds if nothing is there. Editors copy
the values.
"""

from konverge._internal.mutation.editors.binding_subjects import BindingSubjectsEditor
from konverge._internal.mutation.editors.config_map_data import ConfigMapDataEditor
from konverge._internal.mutation.editors.container import ContainerEditor
from konverge._internal.mutation.editors.content_editor import ContentEditor
from konverge._internal.mutation.editors.cron_job_spec import CronJobSpecEditor
from konverge._internal.mutation.editors.daemon_set_spec import DaemonSetSpecEditor
from konverge._internal.mutation.editors.deployment_spec import DeploymentSpecEditor
from konverge._internal.mutation.editors.editor import Editor, ListEditor
from konverge._internal.mutation.editors.horizontal_pod_autoscaler_spec import HorizontalPodAutoscalerSpecEditor
from konverge._internal.mutation.editors.ingress_spec import IngressSpecEditor
from konverge._internal.mutation.editors.job_spec import JobSpecEditor
from konverge._internal.mutation.editors.network_policy_spec import NetworkPolicySpecEditor
from konverge._internal.mutation.editors.object_meta import ObjectMetaEditor
from konverge._internal.mutation.editors.persistent_volume_claim_spec import PersistentVolumeClaimSpecEditor
from konverge._internal.mutation.editors.persistent_volume_spec import PersistentVolumeSpecEditor
from konverge._internal.mutation.editors.pod_disruption_budget_spec import PodDisruptionBudgetSpecEditor
from konverge._internal.mutation.editors.pod_spec import PodSpecEditor
from konverge._internal.mutation.editors.policy_rules import PolicyRulesEditor
from konverge._internal.mutation.editors.replica_set_spec import ReplicaSetSpecEditor
from konverge._internal.mutation.editors.secret_data import SecretDataEditor
from konverge._internal.mutation.editors.service_spec import ServiceSpecEditor
from konverge._internal.mutation.editors.stateful_set_spec import StatefulSetSpecEditor

__all__ = [
    "BindingSubjectsEditor",
    "ConfigMapDataEditor",
    "ContainerEditor",
    "ContentEditor",
    "CronJobSpecEditor",
    "DaemonSetSpecEditor",
    "DeploymentSpecEditor",
    "Editor",
    "HorizontalPodAutoscalerSpecEditor",
    "IngressSpecEditor",
    "JobSpecEditor",
    "ListEditor",
    "NetworkPolicySpecEditor",
    "ObjectMetaEditor",
    "PersistentVolumeClaimSpecEditor",
    "PersistentVolumeSpecEditor",
    "PodDisruptionBudgetSpecEditor",
    "PodSpecEditor",
    "PolicyRulesEditor",
    "ReplicaSetSpecEditor",
    "SecretDataEditor",
    "ServiceSpecEditor",
    "StatefulSetSpecEditor",
]
