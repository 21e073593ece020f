"""Whether an object is a custom resource's to delete."""

from __future__ import annotations

from konverge.box.steps.labels import OWNER_UID
from konverge.kube import GroupVersionKind, Object, ObjectKey, controller_of, has_owner

__all__ = ["can_own", "is_of_earlier_life", "is_ours"]


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


def is_of_earlier_life(obj: Object, owner: Object) -> bool:
    """Tell whether an earlier custom resource of that name controls the object: the cluster is about to delete it."""
    controller = controller_of(obj)
    if controller is None or controller.get("uid") == owner["metadata"]["uid"]:
        return False
    gvk = GroupVersionKind.of(owner)
    group = str(controller.get("apiVersion", "")).rpartition("/")[0]
    same = (group, controller.get("kind"), controller.get("name")) == (gvk.group, gvk.kind, owner["metadata"]["name"])
    return same and can_own(owner, ObjectKey.of(obj).namespace)
