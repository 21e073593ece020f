"""Changes to objects by the admission plug-ins that are on by default."""

from __future__ import annotations

from konverge._internal.kube import Object
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.pod_admission import (
    PRIORITY_CLASSES,
    admit_new_pod,
    admit_pod_update,
    find_default_priority_class,
)
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["check_single_default", "run_create_plugins", "run_update_plugins", "stamp_template_generation"]

_PROTECTION = {"persistentvolumeclaims": "kubernetes.io/pvc-protection"}
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
    finalizer = _PROTECTION.get(resource.storage)
    if finalizer is not None:
        finalizers = obj["metadata"].get("finalizers") or []
        if finalizer not in finalizers:
            obj["metadata"]["finalizers"] = [*finalizers, finalizer]


def run_update_plugins(resource: ServedResource, old: Object, obj: Object, subresource: str) -> None:
    """Run the admission plug-ins on a changed object, in place."""
    if resource.storage == "pods" and not subresource:
        admit_pod_update(old, obj)


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
