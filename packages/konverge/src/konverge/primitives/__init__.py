"""Primitives: one Kubernetes object each, with everything its kind knows about being healthy, late and suspended.

A primitive is a value made from a desired object and its author's functions; what goes out is the protocol
`konverge.primitives.resource_protocol.Resource`, through which the engine renders and judges it. Nothing here talks to
a cluster, keeps state between calls, or raises because a server sent something odd.

One module a kind, each in the same order: the class with its defaults for health, grace and suspension, then the
mutator. What kinds share lives in `primitive` (every kind), `kind_categories` (which answers a kind gives),
`replica_health` (kinds that keep a number of replicas), `load_balancer` (kinds that wait for an address),
`status_conditions` (kinds that are judged by conditions on their latest spec; `gateway_api` those with conditions in
several places) and `field_access` (how a live object is read that nobody has checked). `argument_validation` checks
what an author gives, `data_cells` has the cells between resources. `Custom` judges any other kind by the conditions
that most kinds have (`kstatus`); `Static`, `Workload`, `Task` and `Integration` (`generic_objects`) leave the judgement
to the author.
"""

from konverge.primitives.cluster_role import ClusterRole, ClusterRoleMutator
from konverge.primitives.cluster_role_binding import ClusterRoleBinding, ClusterRoleBindingMutator
from konverge.primitives.config_map import ConfigMap, ConfigMapMutator
from konverge.primitives.cron_job import CronJob, CronJobMutator
from konverge.primitives.custom_object import Custom
from konverge.primitives.custom_resource_definition import CustomResourceDefinition
from konverge.primitives.daemon_set import DaemonSet, DaemonSetMutator
from konverge.primitives.data_cells import Data, Extraction
from konverge.primitives.deployment import Deployment, DeploymentMutator
from konverge.primitives.gateway import Gateway
from konverge.primitives.generic_objects import ContentMutator, Integration, Static, Task, Workload
from konverge.primitives.horizontal_pod_autoscaler import HorizontalPodAutoscaler, HorizontalPodAutoscalerMutator
from konverge.primitives.http_route import HTTPRoute
from konverge.primitives.ingress import Ingress, IngressMutator
from konverge.primitives.job import Job, JobMutator
from konverge.primitives.kind_categories import IntegrationKind, StaticKind, TaskKind, WorkloadKind
from konverge.primitives.namespace import Namespace
from konverge.primitives.network_policy import NetworkPolicy, NetworkPolicyMutator
from konverge.primitives.persistent_volume import PersistentVolume, PersistentVolumeMutator
from konverge.primitives.persistent_volume_claim import PersistentVolumeClaim, PersistentVolumeClaimMutator
from konverge.primitives.pod import Pod, PodMutator
from konverge.primitives.pod_disruption_budget import PodDisruptionBudget, PodDisruptionBudgetMutator
from konverge.primitives.primitive import CommonOptions, DesiredObject, Extractor, LifecycleHandlers, Primitive
from konverge.primitives.replica_set import ReplicaSet, ReplicaSetMutator
from konverge.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    GuardResult,
    GuardStatus,
    Operation,
    Resource,
    Suspension,
    SuspensionStatus,
)
from konverge.primitives.role import Role, RoleMutator
from konverge.primitives.role_binding import RoleBinding, RoleBindingMutator
from konverge.primitives.secret import Secret, SecretMutator
from konverge.primitives.service import Service, ServiceMutator
from konverge.primitives.service_account import ServiceAccount, ServiceAccountMutator
from konverge.primitives.stateful_set import StatefulSet, StatefulSetMutator

__all__ = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterRoleBindingMutator",
    "ClusterRoleMutator",
    "CommonOptions",
    "ConfigMap",
    "ConfigMapMutator",
    "ContentMutator",
    "Convergence",
    "ConvergingStatus",
    "CronJob",
    "CronJobMutator",
    "Custom",
    "CustomResourceDefinition",
    "DaemonSet",
    "DaemonSetMutator",
    "Data",
    "Deployment",
    "DeploymentMutator",
    "DesiredObject",
    "Extraction",
    "Extractor",
    "Gateway",
    "Grace",
    "GraceStatus",
    "GuardResult",
    "GuardStatus",
    "HTTPRoute",
    "HorizontalPodAutoscaler",
    "HorizontalPodAutoscalerMutator",
    "Ingress",
    "IngressMutator",
    "Integration",
    "IntegrationKind",
    "Job",
    "JobMutator",
    "LifecycleHandlers",
    "Namespace",
    "NetworkPolicy",
    "NetworkPolicyMutator",
    "Operation",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimMutator",
    "PersistentVolumeMutator",
    "Pod",
    "PodDisruptionBudget",
    "PodDisruptionBudgetMutator",
    "PodMutator",
    "Primitive",
    "ReplicaSet",
    "ReplicaSetMutator",
    "Resource",
    "Role",
    "RoleBinding",
    "RoleBindingMutator",
    "RoleMutator",
    "Secret",
    "SecretMutator",
    "Service",
    "ServiceAccount",
    "ServiceAccountMutator",
    "ServiceMutator",
    "StatefulSet",
    "StatefulSetMutator",
    "Static",
    "StaticKind",
    "Suspension",
    "SuspensionStatus",
    "Task",
    "TaskKind",
    "Workload",
    "WorkloadKind",
]
