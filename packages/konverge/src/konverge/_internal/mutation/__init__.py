"""Mutations: the changes of a feature to a desired object, separate from the object's baseline.

An author writes the baseline in its newest form, and one named `Mutation` with a gate for each feature or old version
that differs. The callback of a mutation gets a mutator, which records edits; the edits get editors. konverge applies
the recorded edits to a private copy of the baseline: the mutations in registration order, and the edits of one mutation
in the kind's order of categories (`EditCategory`). The same input gives the same object in every reconcile, in previews
and in tests.
"""

from konverge._internal.mutation.author_errors import wrap_author_errors
from konverge._internal.mutation.container_selectors import (
    ContainerSelector,
    all_containers,
    container_at_index,
    container_named,
    container_not_named,
    containers_named,
    containers_not_named,
)
from konverge._internal.mutation.editors import (
    BindingSubjectsEditor,
    ConfigMapDataEditor,
    ContainerEditor,
    ContentEditor,
    CronJobSpecEditor,
    DaemonSetSpecEditor,
    DeploymentSpecEditor,
    Editor,
    HorizontalPodAutoscalerSpecEditor,
    IngressSpecEditor,
    JobSpecEditor,
    ListEditor,
    NetworkPolicySpecEditor,
    ObjectMetaEditor,
    PersistentVolumeClaimSpecEditor,
    PersistentVolumeSpecEditor,
    PodDisruptionBudgetSpecEditor,
    PodSpecEditor,
    PolicyRulesEditor,
    ReplicaSetSpecEditor,
    SecretDataEditor,
    ServiceSpecEditor,
    StatefulSetSpecEditor,
)
from konverge._internal.mutation.field_editing import copy_json, encode_json
from konverge._internal.mutation.mutations import Mutation, apply_mutations, firing_set
from konverge._internal.mutation.mutator import EditCategory, EditFunction, Mutator
from konverge._internal.mutation.pod_mutators import PodSpecMutator, PodTemplateMutator, WorkloadMutator

__all__ = [
    "BindingSubjectsEditor",
    "ConfigMapDataEditor",
    "ContainerEditor",
    "ContainerSelector",
    "ContentEditor",
    "CronJobSpecEditor",
    "DaemonSetSpecEditor",
    "DeploymentSpecEditor",
    "EditCategory",
    "EditFunction",
    "Editor",
    "HorizontalPodAutoscalerSpecEditor",
    "IngressSpecEditor",
    "JobSpecEditor",
    "ListEditor",
    "Mutation",
    "Mutator",
    "NetworkPolicySpecEditor",
    "ObjectMetaEditor",
    "PersistentVolumeClaimSpecEditor",
    "PersistentVolumeSpecEditor",
    "PodDisruptionBudgetSpecEditor",
    "PodSpecEditor",
    "PodSpecMutator",
    "PodTemplateMutator",
    "PolicyRulesEditor",
    "ReplicaSetSpecEditor",
    "SecretDataEditor",
    "ServiceSpecEditor",
    "StatefulSetSpecEditor",
    "WorkloadMutator",
    "all_containers",
    "apply_mutations",
    "container_at_index",
    "container_named",
    "container_not_named",
    "containers_named",
    "containers_not_named",
    "copy_json",
    "encode_json",
    "firing_set",
    "wrap_author_errors",
]
