"""Owner references: who an object belongs to, and whose garbage it becomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.kube.objects import Object

__all__ = ["build_owner_reference", "find_controller", "has_owner", "is_deleting", "remove_owner"]


def build_owner_reference(owner: Mapping[str, Any], *, controller: bool = True) -> Object:
    """The reference that a child carries.

    A controller reference also blocks the owner's foreground deletion until the child is gone, as ``controllerutil``
    sets it.
    """
    reference: Object = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    if controller:
        reference |= {"controller": True, "blockOwnerDeletion": True}
    return reference


def _list_references(obj: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    metadata = obj.get("metadata")
    listed = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return [found for found in listed if isinstance(found, Mapping)] if isinstance(listed, list) else []


def find_controller(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The one reference whose owner controls the object, None without."""
    return next((found for found in _list_references(obj) if found.get("controller") is True), None)


def has_owner(obj: Mapping[str, Any], uid: str) -> bool:
    """Tell whether the object belongs to the owner of that UID (never by name: a name can be born again)."""
    return any(found.get("uid") == uid for found in _list_references(obj))


def remove_owner(obj: Object, uid: str) -> bool:
    """Drop the references to that owner, in place; tell whether there were any."""
    references = _list_references(obj)
    kept = [found for found in references if found.get("uid") != uid]
    if len(kept) == len(references):
        return False
    if kept:
        obj["metadata"]["ownerReferences"] = kept
    else:
        del obj["metadata"]["ownerReferences"]
    return True


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Tell whether the object is on its way out: deleted, and waiting for finalizers or for its grace."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))
