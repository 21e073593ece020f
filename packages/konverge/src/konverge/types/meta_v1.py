"""The objects of io.k8s.apimachinery.pkg.apis.meta.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Any, Required, TypeAlias, TypedDict

Quantity: TypeAlias = str | int | float


class Condition(TypedDict, total=False):
    lastTransitionTime: Required[str]
    message: Required[str]
    observedGeneration: int
    reason: Required[str]
    status: Required[str]
    type: Required[str]


class LabelSelectorRequirement(TypedDict, total=False):
    key: Required[str]
    operator: Required[str]
    values: list[str]


class LabelSelector(TypedDict, total=False):
    matchExpressions: list[LabelSelectorRequirement]
    matchLabels: dict[str, str]


class ManagedFieldsEntry(TypedDict, total=False):
    apiVersion: str
    fieldsType: str
    fieldsV1: dict[str, Any]
    manager: str
    operation: str
    subresource: str
    time: str


class OwnerReference(TypedDict, total=False):
    apiVersion: Required[str]
    blockOwnerDeletion: bool
    controller: bool
    kind: Required[str]
    name: Required[str]
    uid: Required[str]


class ObjectMeta(TypedDict, total=False):
    annotations: dict[str, str]
    creationTimestamp: str
    deletionGracePeriodSeconds: int
    deletionTimestamp: str
    finalizers: list[str]
    generateName: str
    generation: int
    labels: dict[str, str]
    managedFields: list[ManagedFieldsEntry]
    name: str
    namespace: str
    ownerReferences: list[OwnerReference]
    resourceVersion: str
    selfLink: str
    uid: str
