"""The objects of io.k8s.api.storage.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class TokenRequest(TypedDict, total=False):
    audience: Required[str]
    expirationSeconds: int


class CSIDriverSpec(TypedDict, total=False):
    attachRequired: bool
    fsGroupPolicy: str
    nodeAllocatableUpdatePeriodSeconds: int
    podInfoOnMount: bool
    preventPodSchedulingIfMissing: bool
    requiresRepublish: bool
    seLinuxMount: bool
    serviceAccountTokenInSecrets: bool
    storageCapacity: bool
    tokenRequests: list[TokenRequest]
    volumeLifecycleModes: list[str]


class CSIDriver(TypedDict, total=False):
    apiVersion: Literal["storage.k8s.io/v1"]
    kind: Literal["CSIDriver"]
    metadata: meta_v1.ObjectMeta
    spec: Required[CSIDriverSpec]


class VolumeNodeResources(TypedDict, total=False):
    count: int


class CSINodeDriver(TypedDict, total=False):
    allocatable: VolumeNodeResources
    name: Required[str]
    nodeID: Required[str]
    topologyKeys: list[str]


class CSINodeSpec(TypedDict, total=False):
    drivers: Required[list[CSINodeDriver]]


class CSINode(TypedDict, total=False):
    apiVersion: Literal["storage.k8s.io/v1"]
    kind: Literal["CSINode"]
    metadata: meta_v1.ObjectMeta
    spec: Required[CSINodeSpec]


class CSIStorageCapacity(TypedDict, total=False):
    apiVersion: Literal["storage.k8s.io/v1"]
    kind: Literal["CSIStorageCapacity"]
    metadata: meta_v1.ObjectMeta
    capacity: meta_v1.Quantity
    maximumVolumeSize: meta_v1.Quantity
    nodeTopology: meta_v1.LabelSelector
    storageClassName: Required[str]


class StorageClass(TypedDict, total=False):
    apiVersion: Literal["storage.k8s.io/v1"]
    kind: Literal["StorageClass"]
    metadata: meta_v1.ObjectMeta
    allowVolumeExpansion: bool
    allowedTopologies: list[core_v1.TopologySelectorTerm]
    mountOptions: list[str]
    parameters: dict[str, str]
    provisioner: Required[str]
    reclaimPolicy: Literal["Delete", "Recycle", "Retain"]
    volumeBindingMode: Literal["Immediate", "WaitForFirstConsumer"]


class VolumeAttachmentSource(TypedDict, total=False):
    inlineVolumeSpec: core_v1.PersistentVolumeSpec
    persistentVolumeName: str


class VolumeAttachmentSpec(TypedDict, total=False):
    attacher: Required[str]
    nodeName: Required[str]
    source: Required[VolumeAttachmentSource]


class VolumeError(TypedDict, total=False):
    errorCode: int
    message: str
    time: str


class VolumeAttachmentStatus(TypedDict, total=False):
    attachError: VolumeError
    attached: Required[bool]
    attachmentMetadata: dict[str, str]
    detachError: VolumeError


class VolumeAttachment(TypedDict, total=False):
    apiVersion: Literal["storage.k8s.io/v1"]
    kind: Literal["VolumeAttachment"]
    metadata: meta_v1.ObjectMeta
    spec: Required[VolumeAttachmentSpec]
    status: VolumeAttachmentStatus


class VolumeAttributesClass(TypedDict, total=False):
    apiVersion: Literal["storage.k8s.io/v1"]
    kind: Literal["VolumeAttributesClass"]
    metadata: meta_v1.ObjectMeta
    driverName: Required[str]
    parameters: dict[str, str]
