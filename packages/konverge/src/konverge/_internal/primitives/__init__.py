"""Primitives: one Kubernetes object each, with its kind's rules for health, grace and suspension.

A primitive is a value, made from a desired object and functions of the author. It implements the protocol
`primitives.resource_protocol.Resource`, through which the engine renders and judges the object. Primitives
send no requests, keep no state between calls, and do not raise on unexpected content of a live object.

Each kind has one module, in the same order: the class with its defaults for health, grace and suspension, then the
mutator. The shared modules are:

* `primitive`: every kind; `kind_categories`: the lifecycle handlers of each category.
* `replica_health`: kinds with a number of replicas; `load_balancer`: kinds that wait for an address.
* `status_conditions`: kinds with conditions on their latest spec; `gateway_api`: conditions in several places.
* `field_access`: reads of live objects, whose content is not validated.
* `value_generation`: the decision about values that are made once; `generated_values`: their shapes.
* `argument_validation`: checks of the author's arguments; `data_cells`: the cells between resources.

`Custom` judges any other kind by the conditions that most kinds have (`kstatus`). For `Static`, `Workload`, `Task` and
`Integration` (`generic_objects`), the author provides the judgment.
"""

from konverge._internal.primitives.cluster_role import ClusterRole, ClusterRoleMutator
from konverge._internal.primitives.cluster_role_binding import ClusterRoleBinding, ClusterRoleBindingMutator
from konverge._internal.primitives.config_map import ConfigMap, ConfigMapMutator
from konverge._internal.primitives.cron_job import CronJob, CronJobMutator
from konverge._internal.primitives.custom_object import Custom
from konverge._internal.primitives.custom_resource_definition import CustomResourceDefinition
from konverge._internal.primitives.daemon_set import DaemonSet, DaemonSetMutator
from konverge._internal.primitives.data_cells import Data, Extraction
from konverge._internal.primitives.deployment import Deployment, DeploymentMutator
from konverge._internal.primitives.gateway import Gateway
from konverge._internal.primitives.generated_certificate import GeneratedCertificate
from konverge._internal.primitives.generated_secret import GeneratedSecret
from konverge._internal.primitives.generated_values import Generated, GeneratedValue
from konverge._internal.primitives.generic_objects import ContentMutator, Integration, Static, Task, Workload
from konverge._internal.primitives.horizontal_pod_autoscaler import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerMutator,
)
from konverge._internal.primitives.http_route import HTTPRoute
from konverge._internal.primitives.ingress import Ingress, IngressMutator
from konverge._internal.primitives.job import Job, JobMutator
from konverge._internal.primitives.kind_categories import IntegrationKind, StaticKind, TaskKind, WorkloadKind
from konverge._internal.primitives.namespace import Namespace
from konverge._internal.primitives.network_policy import NetworkPolicy, NetworkPolicyMutator
from konverge._internal.primitives.persistent_volume import PersistentVolume, PersistentVolumeMutator
from konverge._internal.primitives.persistent_volume_claim import PersistentVolumeClaim, PersistentVolumeClaimMutator
from konverge._internal.primitives.pod import Pod, PodMutator
from konverge._internal.primitives.pod_disruption_budget import PodDisruptionBudget, PodDisruptionBudgetMutator
from konverge._internal.primitives.primitive import (
    CommonOptions,
    DesiredObject,
    Extractor,
    LifecycleHandlers,
    Primitive,
)
from konverge._internal.primitives.replica_set import ReplicaSet, ReplicaSetMutator
from konverge._internal.primitives.resource_protocol import (
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
from konverge._internal.primitives.role import Role, RoleMutator
from konverge._internal.primitives.role_binding import RoleBinding, RoleBindingMutator
from konverge._internal.primitives.secret import Secret, SecretMutator
from konverge._internal.primitives.service import Service, ServiceMutator
from konverge._internal.primitives.service_account import ServiceAccount, ServiceAccountMutator
from konverge._internal.primitives.stateful_set import StatefulSet, StatefulSetMutator

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
    "Generated",
    "GeneratedCertificate",
    "GeneratedSecret",
    "GeneratedValue",
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
