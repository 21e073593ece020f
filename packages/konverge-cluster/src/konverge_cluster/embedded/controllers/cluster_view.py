"""What the players see of the cluster: every object by reference, with the few look-ups that they need.

The API server tells each change synchronously and in order, so the view is never behind: a decision that is taken from
it and written at once cannot be stale. Objects are shared with the server's storage; a player that wants another one
makes a new mapping and leaves the old alone.

Every listing is in the order in which things came in, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from konverge.kube import GroupVersionKind, Object, ObjectKey, find_controller

__all__ = ["ClusterChange", "ClusterView", "GroupKind", "ViewItem", "list_owner_references"]

GroupKind: TypeAlias = tuple[str, str]


class ClusterChange(NamedTuple):
    """One change, as players are told of it. For ``DELETED``, `new` is the object's last state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: GroupKind
    key: ObjectKey
    old: Object | None
    new: Object


class ViewItem(NamedTuple):
    """An object and its type."""

    kind: GroupKind
    object: Object

    @property
    def key(self) -> ObjectKey:
        """Which one of its kind it is."""
        return ObjectKey.of(self.object)


def list_owner_references(obj: Object) -> list[dict[str, Any]]:
    """The object's owner references; an empty list without."""
    return obj["metadata"].get("ownerReferences") or []


class ClusterView:
    """The mirror. `note` keeps it; everything else reads it."""

    def __init__(self) -> None:
        self._objects: dict[GroupKind, dict[str, dict[str, Object]]] = {}
        self._by_uid: dict[str, ViewItem] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._uncontrolled: dict[tuple[GroupKind, str], dict[str, None]] = {}

    def record(self, notice: ClusterChange) -> None:
        """Take in one change."""
        namespace, name = notice.key
        uid = notice.new["metadata"]["uid"]
        held = self._objects.setdefault(notice.kind, {}).setdefault(namespace, {})
        if notice.type == "DELETED":
            held.pop(name, None)
            self._by_uid.pop(uid, None)
            self._unlink(notice.kind, notice.old or notice.new)
            return
        held[name] = notice.new
        self._by_uid[uid] = ViewItem(notice.kind, notice.new)
        if notice.old is not None:
            # Linking anew would move the object to the end of its owner's dependents.
            if list_owner_references(notice.old) == list_owner_references(notice.new):
                return
            self._unlink(notice.kind, notice.old)
        self._link(notice.kind, notice.new, namespace, uid)

    def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """The object of that key, None when there is none."""
        return self._objects.get(gvk.group_kind, {}).get(key.namespace, {}).get(key.name)

    def find_by_uid(self, uid: str) -> ViewItem | None:
        """The object of that UID, None when there is none."""
        return self._by_uid.get(uid)

    def iter_objects(self) -> Iterator[ViewItem]:
        """All objects."""
        return iter(tuple(self._by_uid.values()))

    def list_kind(self, gvk: GroupVersionKind, namespace: str | None = None) -> list[Object]:
        """All objects of a kind; of one namespace when one is given."""
        held = self._objects.get(gvk.group_kind, {})
        if namespace is not None:
            return list(held.get(namespace, {}).values())
        return [obj for objects in held.values() for obj in objects.values()]

    def list_namespace(self, namespace: str) -> list[ViewItem]:
        """Everything that lives in a namespace."""
        return [ViewItem(kind, obj) for kind, held in self._objects.items() for obj in held.get(namespace, {}).values()]

    def list_dependents(self, uid: str) -> list[ViewItem]:
        """Everything that names the UID among its owners."""
        return [item for found in self._dependents.get(uid, ()) if (item := self._by_uid.get(found)) is not None]

    def list_controlled(self, gvk: GroupVersionKind, uid: str) -> list[Object]:
        """The objects of that kind that the owner of the UID controls."""
        kind = gvk.group_kind
        return [
            item.object
            for item in self.list_dependents(uid)
            if item.kind == kind and (find_controller(item.object) or {}).get("uid") == uid
        ]

    def list_orphans(self, gvk: GroupVersionKind, namespace: str) -> list[Object]:
        """The objects of that kind in the namespace that nobody controls."""
        found: Iterable[str] = self._uncontrolled.get((gvk.group_kind, namespace), ())
        return [self._by_uid[uid].object for uid in found]

    def _link(self, kind: GroupKind, obj: Object, namespace: str, uid: str) -> None:
        controlled = False
        for reference in list_owner_references(obj):
            self._dependents.setdefault(reference["uid"], {})[uid] = None
            controlled = controlled or reference.get("controller") is True
        if not controlled:
            self._uncontrolled.setdefault((kind, namespace), {})[uid] = None

    def _unlink(self, kind: GroupKind, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for reference in list_owner_references(obj):
            dependents = self._dependents.get(reference["uid"])
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[reference["uid"]]
        uncontrolled = self._uncontrolled.get((kind, obj["metadata"].get("namespace", "")))
        if uncontrolled is not None:
            uncontrolled.pop(uid, None)
