"""Primitives: one Kubernetes object each, with its kind's rules for health, grace and suspension.

A primitive is a value, made from a desired object and functions of the author. It implements the protocol
`konverge.primitives.resource_protocol.Resource`, through which the engine renders and judges the object. Primitives
send no requests, keep no state between calls, and do not raise on unexpected content of a live object.

Each kind has one module, in the same order: the class with its defaults for health, grace and suspension, then the
mutator. The shared modules are:

* `primitive`: every kind; `kind_categories`: the lifecycle handlers of each category.
* `replica_health`: kinds with a number of replicas; `load_balancer`: kinds that wait for an address.
* `status_conditions`: kinds with conditions on their latest spec; `gateway_api`: conditions in several places.
* `field_access`: reads of live objects, whose content is not validated.
* `argument_validation`: checks of the author's arguments; `data_cells`: the cells between resources.

`Custom` judges any other kind by the conditions that most kinds have (`kstatus`). For `Static`, `Workload`, `Task` and
`Integration` (`generic_objects`), the author provides the judgment.
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
