"""Changes to objects by the admission plug-ins that are on by default."""

from __future__ import annotations

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.pod_admission import (
    PRIORITY_CLASSES,
    admit_new_pod,
    admit_pod_update,
    find_default_priority_class,
)
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.storage_classes import (
    STORAGE_CLASSES,
    find_default_class,
    get_class_name,
    has_class,
)
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = [
    "check_expansion",
    "check_single_default",
    "run_create_plugins",
    "run_update_plugins",
    "stamp_template_generation",
]

_PROTECTION = {
    "persistentvolumeclaims": "kubernetes.io/pvc-protection",
    "persistentvolumes": "kubernetes.io/pv-protection",
}
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def run_create_plugins(resource: ServedResource, obj: Object, storage: Storage) -> None:
    """Run the admission plug-ins on a new object, in place.

    Args:
        resource: The resource of the object.
        obj: The object.
        storage: The storage with the classes that objects name.

    Raises:
        ForbiddenError: A plug-in refuses the object.
    """
    if resource.storage == "pods":
        admit_new_pod(obj, storage)
    if resource.storage == "persistentvolumeclaims":
        _set_default_class(obj, storage)
    finalizer = _PROTECTION.get(resource.storage)
    if finalizer is not None:
        finalizers = obj["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def _set_default_class(claim: Object, storage: Storage) -> None:
    if not has_class(claim):
        storage_class = find_default_class(stored.object for stored in storage.iter_objects(STORAGE_CLASSES))
        if storage_class is not None:
            claim.setdefault("spec", {})["storageClassName"] = storage_class["metadata"]["name"]


def run_update_plugins(resource: ServedResource, old: Object, obj: Object, subresource: str) -> None:
    """Run the admission plug-ins that change an updated object, in place."""
    if resource.storage == "pods" and not subresource:
        admit_pod_update(old, obj)


def check_expansion(resource: ServedResource, old: Object, obj: Object, subresource: str, storage: Storage) -> None:
    """Check that a claim grows only if its class permits it; other resources pass.

    Raises:
        ForbiddenError: The claim is not bound, or its class does not permit a larger size.
    """
    if resource.storage != "persistentvolumeclaims" or subresource:
        return
    before, after = _get_requested_size(old), _get_requested_size(obj)
    if before is None or after is None or quantity_to_fraction(after) <= quantity_to_fraction(before):
        return
    storage_class = storage.get(STORAGE_CLASSES, ObjectKey("", get_class_name(obj)))
    if (old.get("status") or {}).get("phase") != "Bound":
        reason = "Only bound persistent volume claims can be expanded"
    elif storage_class is None or not storage_class.object.get("allowVolumeExpansion"):
        reason = (
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support "
            "resize"
        )
    else:
        return
    name = obj["metadata"]["name"]
    raise ForbiddenError(
        f"{resource.qualified_name} {quote(name)} is forbidden: {reason}",
        details={"name": name, "kind": resource.mapping.plural},
    )


def _get_requested_size(claim: Object) -> str | None:
    size: str | None = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return size


def check_single_default(resource: ServedResource, obj: Object, storage: Storage) -> None:
    """Check that at most one PriorityClass is that of pods which name none; other resources pass.

    Raises:
        ForbiddenError: Another class is the default already.
    """
    if resource.storage != PRIORITY_CLASSES or not obj.get("globalDefault"):
        return
    present = find_default_priority_class(storage)
    name = obj["metadata"].get("name", "")
    if present is not None and present["metadata"]["name"] != name:
        own = f"PriorityClass {present['metadata']['name']} is already marked as default"
        raise ForbiddenError(
            f"{resource.qualified_name} {quote(name)} is forbidden: {own}. Only one default can exist",
            details={"name": name, "group": resource.gvk.group, "kind": resource.mapping.plural},
        )


def stamp_template_generation(new: Object, old: Object | None = None) -> None:
    """Count the changes of a DaemonSet's template in its annotation, in place, as apps/v1 does."""
    count = 1
    if old is not None:
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        same = (old.get("spec") or {}).get("template") == (new.get("spec") or {}).get("template")
        count = int(before) + (0 if same else 1)
    metadata = new["metadata"]
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _TEMPLATE_GENERATION: str(count)}
