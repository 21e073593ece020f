"""Owner references: the owners of an object, for which the garbage collector deletes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.kube.objects import Object

__all__ = ["build_owner_reference", "find_controller", "has_owner", "is_deleting", "remove_owner"]


def build_owner_reference(owner: Mapping[str, Any], *, controller: bool = True) -> Object:
    """Build the reference to an owner.

    A controller reference also blocks the owner's foreground deletion until the object is deleted, as in
    ``controllerutil`` of controller-runtime.
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
    references = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
    return [each for each in references if isinstance(each, Mapping)] if isinstance(references, list) else []


def find_controller(obj: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference to the controller of the object; None if it has none."""
    return next((reference for reference in _list_references(obj) if reference.get("controller") is True), None)


def has_owner(obj: Mapping[str, Any], uid: str) -> bool:
    """Return True if the object has the owner with that UID (never by name: a new owner can reuse a name)."""
    return any(reference.get("uid") == uid for reference in _list_references(obj))


def remove_owner(obj: Object, uid: str) -> bool:
    """Remove the references to that owner, in place; return True if there were any."""
    references = _list_references(obj)
    kept = [reference for reference in references if reference.get("uid") != uid]
    if len(kept) == len(references):
        return False
    if kept:
        obj["metadata"]["ownerReferences"] = kept
    else:
        del obj["metadata"]["ownerReferences"]
    return True


def is_deleting(obj: Mapping[str, Any]) -> bool:
    """Return True if the object has a deletion timestamp: it waits for finalizers or for its grace period."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))
