"""Whether an object is a custom resource's to delete."""

from __future__ import annotations

import re

from konverge.apply.managed_fields import APPLY
from konverge.component.ownership import describe_foreign_controller, has_own_entry
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_controller
from konverge_box.steps.labels import OWNER_UID

__all__ = ["can_own", "describe_other", "is_handed_over", "is_of_earlier_life", "is_ours"]

_HASHED_MANAGER = re.compile("[0-9a-f]{64}")


def can_own(owner: Object, namespace: str) -> bool:
    """Tell whether an object in that namespace (empty for none) can have a reference to the owner.

    To the garbage collector a namespaced owner does not exist outside of its namespace, and what refers to it from
    there is garbage.
    """
    own = ObjectKey.of(owner).namespace
    return not own or own == namespace


def is_ours(obj: Object, owner: Object) -> bool:
    """Tell whether a box made the object for this very owner, so that it may delete it.

    It has the label with the owner's UID. Where it can have a reference to the owner, the owner controls it, too:
    labels are copied from one object to another by hand, and who takes the reference away wants to keep the object.
    Where it cannot, nothing controls it, and the box has applied it (`konverge.component.ownership`).
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
    """Whose an object is that the box has not made for this owner, as far as a cache tells; empty if it has."""
    if told := describe_foreign_controller(obj, owner):
        return told
    managers = obj["metadata"].get("managedFields") or ()
    is_known = find_controller(obj) is not None or has_own_entry(obj, owner, "") or any(map(_is_hashed, managers))
    return "" if is_known else "made by somebody else"


def is_of_earlier_life(obj: Object, owner: Object) -> bool:
    """Tell whether an earlier custom resource of that name controls the object: the cluster is about to delete it."""
    controller = find_controller(obj)
    if controller is None or controller.get("uid") == owner["metadata"]["uid"]:
        return False
    gvk = GroupVersionKind.of(owner)
    group = str(controller.get("apiVersion", "")).rpartition("/")[0]
    same = (group, controller.get("kind"), controller.get("name")) == (gvk.group, gvk.kind, owner["metadata"]["name"])
    return same and can_own(owner, ObjectKey.of(obj).namespace)


def _is_hashed(entry: Object) -> bool:
    """Tell whether a group with a long name may have applied the object; beside the label, that is enough."""
    return entry.get("operation") == APPLY and bool(_HASHED_MANAGER.fullmatch(str(entry.get("manager"))))
