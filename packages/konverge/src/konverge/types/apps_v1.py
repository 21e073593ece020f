"""The objects of io.k8s.api.apps.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Any, Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class ControllerRevision(TypedDict, total=False):
    apiVersion: Literal["apps/v1"]
    kind: Literal["ControllerRevision"]
    metadata: meta_v1.ObjectMeta
    data: dict[str, Any]
    revision: Required[int]


class RollingUpdateDaemonSet(TypedDict, total=False):
    maxSurge: int | str
    maxUnavailable: int | str


class DaemonSetUpdateStrategy(TypedDict, total=False):
    rollingUpdate: RollingUpdateDaemonSet
    type: Literal["OnDelete", "RollingUpdate"]


class DaemonSetSpec(TypedDict, total=False):
    minReadySeconds: int
    revisionHistoryLimit: int
    selector: Required[meta_v1.LabelSelector]
    template: Required[core_v1.PodTemplateSpec]
    updateStrategy: DaemonSetUpdateStrategy


class DaemonSetCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class DaemonSetStatus(TypedDict, total=False):
    collisionCount: int
    conditions: list[DaemonSetCondition]
    currentNumberScheduled: Required[int]
    desiredNumberScheduled: Required[int]
    numberAvailable: int
    numberMisscheduled: Required[int]
    numberReady: Required[int]
    numberUnavailable: int
    observedGeneration: int
    updatedNumberScheduled: int


class DaemonSet(TypedDict, total=False):
    apiVersion: Literal["apps/v1"]
    kind: Literal["DaemonSet"]
    metadata: meta_v1.ObjectMeta
    spec: DaemonSetSpec
    status: DaemonSetStatus


class RollingUpdateDeployment(TypedDict, total=False):
    maxSurge: int | str
    maxUnavailable: int | str


class DeploymentStrategy(TypedDict, total=False):
    rollingUpdate: RollingUpdateDeployment
    type: Literal["Recreate", "RollingUpdate"]


class DeploymentSpec(TypedDict, total=False):
    minReadySeconds: int
    paused: bool
    progressDeadlineSeconds: int
    replicas: int
    revisionHistoryLimit: int
    selector: Required[meta_v1.LabelSelector]
    strategy: DeploymentStrategy
    template: Required[core_v1.PodTemplateSpec]


class DeploymentCondition(TypedDict, total=False):
    lastTransitionTime: str
    lastUpdateTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class DeploymentStatus(TypedDict, total=False):
    availableReplicas: int
    collisionCount: int
    conditions: list[DeploymentCondition]
    observedGeneration: int
    readyReplicas: int
    replicas: int
    terminatingReplicas: int
    unavailableReplicas: int
    updatedReplicas: int


class Deployment(TypedDict, total=False):
    apiVersion: Literal["apps/v1"]
    kind: Literal["Deployment"]
    metadata: meta_v1.ObjectMeta
    spec: DeploymentSpec
    status: DeploymentStatus


class ReplicaSetSpec(TypedDict, total=False):
    minReadySeconds: int
    replicas: int
    selector: Required[meta_v1.LabelSelector]
    template: core_v1.PodTemplateSpec


class ReplicaSetCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class ReplicaSetStatus(TypedDict, total=False):
    availableReplicas: int
    conditions: list[ReplicaSetCondition]
    fullyLabeledReplicas: int
    observedGeneration: int
    readyReplicas: int
    replicas: Required[int]
    terminatingReplicas: int


class ReplicaSet(TypedDict, total=False):
    apiVersion: Literal["apps/v1"]
    kind: Literal["ReplicaSet"]
    metadata: meta_v1.ObjectMeta
    spec: ReplicaSetSpec
    status: ReplicaSetStatus


class RollingUpdateStatefulSetStrategy(TypedDict, total=False):
    maxUnavailable: int | str
    partition: int


class StatefulSetOrdinals(TypedDict, total=False):
    start: int


class StatefulSetPersistentVolumeClaimRetentionPolicy(TypedDict, total=False):
    whenDeleted: str
    whenScaled: str


class StatefulSetUpdateStrategy(TypedDict, total=False):
    rollingUpdate: RollingUpdateStatefulSetStrategy
    type: Literal["OnDelete", "RollingUpdate"]


class StatefulSetSpec(TypedDict, total=False):
    minReadySeconds: int
    ordinals: StatefulSetOrdinals
    persistentVolumeClaimRetentionPolicy: StatefulSetPersistentVolumeClaimRetentionPolicy
    podManagementPolicy: Literal["OrderedReady", "Parallel"]
    replicas: int
    revisionHistoryLimit: int
    selector: Required[meta_v1.LabelSelector]
    serviceName: str
    template: Required[core_v1.PodTemplateSpec]
    updateStrategy: StatefulSetUpdateStrategy
    volumeClaimTemplates: list[core_v1.PersistentVolumeClaim]


class StatefulSetCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class StatefulSetStatus(TypedDict, total=False):
    availableReplicas: int
    collisionCount: int
    conditions: list[StatefulSetCondition]
    currentReplicas: int
    currentRevision: str
    observedGeneration: int
    readyReplicas: int
    replicas: Required[int]
    updateRevision: str
    updatedReplicas: int


class StatefulSet(TypedDict, total=False):
    apiVersion: Literal["apps/v1"]
    kind: Literal["StatefulSet"]
    metadata: meta_v1.ObjectMeta
    spec: StatefulSetSpec
    status: StatefulSetStatus
