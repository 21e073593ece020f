"""Whether an object is a custom resource's to delete."""

from __future__ import annotations

from konverge.box.steps.labels import OWNER_UID
from konverge.kube import Object, ObjectKey, has_owner

__all__ = ["can_own", "is_ours"]


def can_own(owner: Object, namespace: str) -> bool:
    """Tell whether an object in that namespace (empty for none) can have a reference to the owner.

    To the garbage collector a namespaced owner does not exist outside of its namespace, and what refers to it from
    there is garbage.
    """
    own = ObjectKey.of(owner).namespace
    return not own or own == namespace


def is_ours(obj: Object, owner: Object) -> bool:
    """Tell whether a box made the object for this very owner, so that it may delete it.

    It has the label with the owner's UID, and where it can have a reference to the owner it has that, too: labels are
    copied from one object to another by hand, and who takes the reference away wants to keep the object.
    """
    uid = owner["metadata"]["uid"]
    labels = obj["metadata"].get("labels") or {}
    if labels.get(OWNER_UID) != uid:
        return False
    return has_owner(obj, uid) or not can_own(owner, ObjectKey.of(obj).namespace)
