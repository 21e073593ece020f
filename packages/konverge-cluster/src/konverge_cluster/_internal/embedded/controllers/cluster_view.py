"""The controllers' view of the cluster: every object by reference, with indexes for their lookups.

The API server reports each change synchronously and in order, so the view is always current: a decision that is made
from it and written at once cannot be outdated. Objects are shared with the server's storage. A controller that needs
another one creates a new mapping and does not change the old one.

Every list is in the order of arrival, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, find_controller

__all__ = ["ClusterChange", "ClusterView", "GroupKind", "ViewItem", "list_owner_references"]

GroupKind: TypeAlias = tuple[str, str]


class ClusterChange(NamedTuple):
    """One change, as controllers receive it. For ``DELETED``, `new` is the object's last state."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: GroupKind
    key: ObjectKey
    old: Object | None
    new: Object


class ViewItem(NamedTuple):
    """An object and its kind."""

    kind: GroupKind
    object: Object

    @property
    def key(self) -> ObjectKey:
        """The namespace and name of the object."""
        return ObjectKey.of(self.object)


def list_owner_references(obj: Object) -> list[dict[str, Any]]:
    """Return the object's owner references; an empty list if there are none."""
    return obj["metadata"].get("ownerReferences") or []


class ClusterView:
    """An index of all objects. Only `record` changes it."""

    def __init__(self) -> None:
        self._objects: dict[GroupKind, dict[str, dict[str, Object]]] = {}
        self._by_uid: dict[str, ViewItem] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._uncontrolled: dict[tuple[GroupKind, str], dict[str, None]] = {}

    def record(self, notice: ClusterChange) -> None:
        """Add one change to the view."""
        namespace, name = notice.key
        uid = notice.new["metadata"]["uid"]
        stored = self._objects.setdefault(notice.kind, {}).setdefault(namespace, {})
        if notice.type == "DELETED":
            stored.pop(name, None)
            self._by_uid.pop(uid, None)
            self._unlink(notice.kind, notice.old or notice.new)
            return
        stored[name] = notice.new
        self._by_uid[uid] = ViewItem(notice.kind, notice.new)
        if notice.old is not None:
            # A new link would move the object to the end of its owner's dependents.
            if list_owner_references(notice.old) == list_owner_references(notice.new):
                return
            self._unlink(notice.kind, notice.old)
        self._link(notice.kind, notice.new, namespace, uid)

    def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """Return the object with that key; None if it does not exist."""
        return self._objects.get(gvk.group_kind, {}).get(key.namespace, {}).get(key.name)

    def find_by_uid(self, uid: str) -> ViewItem | None:
        """Return the object with that UID; None if it does not exist."""
        return self._by_uid.get(uid)

    def iter_objects(self) -> Iterator[ViewItem]:
        """Iterate over all objects of the cluster."""
        return iter(tuple(self._by_uid.values()))

    def list_kind(self, gvk: GroupVersionKind, namespace: str | None = None) -> list[Object]:
        """Return all objects of a kind, optionally of one namespace."""
        by_namespace = self._objects.get(gvk.group_kind, {})
        if namespace is not None:
            return list(by_namespace.get(namespace, {}).values())
        return [obj for objects in by_namespace.values() for obj in objects.values()]

    def list_namespace(self, namespace: str) -> list[ViewItem]:
        """Return all objects in a namespace."""
        return [
            ViewItem(kind, obj) for kind, stored in self._objects.items() for obj in stored.get(namespace, {}).values()
        ]

    def list_dependents(self, uid: str) -> list[ViewItem]:
        """Return all objects whose owner references contain the UID."""
        return [
            item for dependent in self._dependents.get(uid, ()) if (item := self._by_uid.get(dependent)) is not None
        ]

    def list_controlled(self, gvk: GroupVersionKind, uid: str) -> list[Object]:
        """Return the objects of that kind whose controller has the UID."""
        kind = gvk.group_kind
        return [
            item.object
            for item in self.list_dependents(uid)
            if item.kind == kind and (find_controller(item.object) or {}).get("uid") == uid
        ]

    def list_orphans(self, gvk: GroupVersionKind, namespace: str) -> list[Object]:
        """Return the objects of that kind in the namespace that have no controller."""
        uids: Iterable[str] = self._uncontrolled.get((gvk.group_kind, namespace), ())
        return [self._by_uid[uid].object for uid in uids]

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
