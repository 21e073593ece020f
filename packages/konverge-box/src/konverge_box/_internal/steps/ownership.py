"""Ownership of objects: the rules that allow a custom resource to delete an object."""

from __future__ import annotations

import re

from konverge._internal.apply.managed_fields import APPLY
from konverge._internal.component.ownership import describe_foreign_controller, has_own_entry
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, find_controller
from konverge_box._internal.steps.labels import OWNER_UID

__all__ = ["can_own", "describe_other", "is_handed_over", "is_of_earlier_life", "is_ours"]

_HASHED_MANAGER = re.compile("[0-9a-f]{64}")


def can_own(owner: Object, namespace: str) -> bool:
    """Tell whether an object in that namespace (empty for none) can have a reference to the owner.

    The garbage collector finds a namespaced owner only in its own namespace. It deletes objects of other namespaces
    that refer to the owner.
    """
    own = ObjectKey.of(owner).namespace
    return not own or own == namespace


def is_ours(obj: Object, owner: Object) -> bool:
    """Tell whether a box created the object for exactly this owner, so that it may delete the object.

    The object has the label with the owner's UID. Where it can have a reference to the owner, the owner must also
    control it: users copy labels between objects, and removing the reference is a request to keep the object.
    Where it cannot, nothing may control it, and the box must have applied it (`konverge.component.ownership`).
    """
    if not is_handed_over(obj, owner):
        return False
    if can_own(owner, ObjectKey.of(obj).namespace):
        return find_controller(obj) is not None
    return has_own_entry(obj, owner, "") or any(map(_is_hashed, obj["metadata"].get("managedFields") or ()))


def is_handed_over(obj: Object, owner: Object) -> bool:
    """Tell whether the object has the label with the owner's UID, and no other controller."""
    uid, controller = owner["metadata"]["uid"], find_controller(obj)
    labels = obj["metadata"].get("labels") or {}
    return labels.get(OWNER_UID) == uid and (controller is None or controller.get("uid") == uid)


def describe_other(obj: Object, owner: Object) -> str:
    """Describe the owner of an object that the box has not created for this owner; return "" for its own."""
    if controller := describe_foreign_controller(obj, owner):
        return controller
    managers = obj["metadata"].get("managedFields") or ()
    is_known = find_controller(obj) is not None or has_own_entry(obj, owner, "") or any(map(_is_hashed, managers))
    return "" if is_known else "created by another client"


def is_of_earlier_life(obj: Object, owner: Object) -> bool:
    """Tell whether an earlier custom resource of that name controls the object, so that the cluster will delete it."""
    controller = find_controller(obj)
    if controller is None or controller.get("uid") == owner["metadata"]["uid"]:
        return False
    gvk = GroupVersionKind.of(owner)
    group = str(controller.get("apiVersion", "")).rpartition("/")[0]
    same = (group, controller.get("kind"), controller.get("name")) == (gvk.group, gvk.kind, owner["metadata"]["name"])
    return same and can_own(owner, ObjectKey.of(obj).namespace)


def _is_hashed(entry: Object) -> bool:
    """Tell whether a group with a long name may have applied the object. With the label, that is sufficient."""
    return entry.get("operation") == APPLY and bool(_HASHED_MANAGER.fullmatch(str(entry.get("manager"))))
