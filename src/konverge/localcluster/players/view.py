"""What the players see of the cluster: every object by reference, with the few look-ups that they need.

The API server tells each change synchronously and in order, so the view is never behind: a decision that is taken from
it and written at once cannot be stale. Objects are shared with the server's storage; a player that wants another one
makes a new mapping and leaves the old alone.

Every listing is in the order in which things came in, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from konverge.kube import GroupVersionKind, Object, ObjectKey, controller_of

__all__ = ["GroupKind", "Item", "Notice", "View", "owner_references"]

GroupKind: TypeAlias = tuple[str, str]


class Notice(NamedTuple):
    """One change, as players are told of it. For ``DELETED``, `new` is the object's last state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: GroupKind
    key: ObjectKey
    old: Object | None
    new: Object


class Item(NamedTuple):
    """An object and its type."""

    kind: GroupKind
    object: Object

    @property
    def key(self) -> ObjectKey:
        """Which one of its kind it is."""
        return ObjectKey.of(self.object)


def owner_references(obj: Object) -> list[dict[str, Any]]:
    """The object's owner references; an empty list without."""
    return obj["metadata"].get("ownerReferences") or []


class View:
    """The mirror. `note` keeps it; everything else reads it."""

    def __init__(self) -> None:
        self._objects: dict[GroupKind, dict[str, dict[str, Object]]] = {}
        self._by_uid: dict[str, Item] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._uncontrolled: dict[tuple[GroupKind, str], dict[str, None]] = {}

    def note(self, notice: Notice) -> None:
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
        self._by_uid[uid] = Item(notice.kind, notice.new)
        if notice.old is not None:
            # Linking anew would move the object to the end of its owner's dependents.
            if owner_references(notice.old) == owner_references(notice.new):
                return
            self._unlink(notice.kind, notice.old)
        self._link(notice.kind, notice.new, namespace, uid)

    def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """The object of that key, None when there is none."""
        return self._objects.get(gvk.group_kind, {}).get(key.namespace, {}).get(key.name)

    def by_uid(self, uid: str) -> Item | None:
        """The object of that UID, None when there is none."""
        return self._by_uid.get(uid)

    def everything(self) -> Iterator[Item]:
        """All objects."""
        return iter(tuple(self._by_uid.values()))

    def all(self, gvk: GroupVersionKind, namespace: str | None = None) -> list[Object]:
        """All objects of a kind; of one namespace when one is given."""
        held = self._objects.get(gvk.group_kind, {})
        if namespace is not None:
            return list(held.get(namespace, {}).values())
        return [obj for objects in held.values() for obj in objects.values()]

    def contents(self, namespace: str) -> list[Item]:
        """Everything that lives in a namespace."""
        return [Item(kind, obj) for kind, held in self._objects.items() for obj in held.get(namespace, {}).values()]

    def dependents(self, uid: str) -> list[Item]:
        """Everything that names the UID among its owners."""
        return [item for found in self._dependents.get(uid, ()) if (item := self._by_uid.get(found)) is not None]

    def controlled(self, gvk: GroupVersionKind, uid: str) -> list[Object]:
        """The objects of that kind that the owner of the UID controls."""
        kind = gvk.group_kind
        return [
            item.object
            for item in self.dependents(uid)
            if item.kind == kind and (controller_of(item.object) or {}).get("uid") == uid
        ]

    def uncontrolled(self, gvk: GroupVersionKind, namespace: str) -> list[Object]:
        """The objects of that kind in the namespace that nobody controls."""
        found: Iterable[str] = self._uncontrolled.get((gvk.group_kind, namespace), ())
        return [self._by_uid[uid].object for uid in found]

    def _link(self, kind: GroupKind, obj: Object, namespace: str, uid: str) -> None:
        controlled = False
        for reference in owner_references(obj):
            self._dependents.setdefault(reference["uid"], {})[uid] = None
            controlled = controlled or reference.get("controller") is True
        if not controlled:
            self._uncontrolled.setdefault((kind, namespace), {})[uid] = None

    def _unlink(self, kind: GroupKind, obj: Object) -> None:
        uid = obj["metadata"]["uid"]
        for reference in owner_references(obj):
            dependents = self._dependents.get(reference["uid"])
            if dependents is not None:
                dependents.pop(uid, None)
                if not dependents:
                    del self._dependents[reference["uid"]]
        uncontrolled = self._uncontrolled.get((kind, obj["metadata"].get("namespace", "")))
        if uncontrolled is not None:
            uncontrolled.pop(uid, None)
