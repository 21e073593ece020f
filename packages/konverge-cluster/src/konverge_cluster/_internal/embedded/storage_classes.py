"""The storage class of a claim or a volume, and the default class. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from konverge._internal.kube import Object

__all__ = [
    "DEFAULT_CLASS_ANNOTATIONS",
    "PROVISIONER",
    "STORAGE_CLASSES",
    "find_default_class",
    "get_class_name",
    "has_class",
    "is_default_class",
]

PROVISIONER = "storage.konverge.test"
"""The provisioner that classes name to get volumes from the simulated storage."""

STORAGE_CLASSES = "storageclasses.storage.k8s.io"
DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
# The name that claims and volumes had before the field.
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def get_class_name(obj: Object) -> str:
    """Return the class of a claim or of a volume; empty for none."""
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or (obj.get("spec") or {}).get("storageClassName") or "")


def has_class(claim: Object) -> bool:
    """Return True if the claim has decided about its class; the empty name means a volume without one."""
    annotations = claim["metadata"].get("annotations") or {}
    return _CLASS_ANNOTATION in annotations or (claim.get("spec") or {}).get("storageClassName") is not None


def is_default_class(storage_class: Object) -> bool:
    """Return True if claims without a class can get this one."""
    annotations = storage_class["metadata"].get("annotations") or {}
    return any(annotations.get(name) == "true" for name in DEFAULT_CLASS_ANNOTATIONS)


def find_default_class(classes: Iterable[Object]) -> Object | None:
    """Return the class of claims that name none: of several the newest, then the first by name; None if absent."""
    marked = sorted(
        (entry for entry in classes if is_default_class(entry)), key=lambda entry: entry["metadata"]["name"]
    )
    return max(marked, key=lambda entry: str(entry["metadata"].get("creationTimestamp", "")), default=None)
