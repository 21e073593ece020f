"""One change of a watched object, as predicates and mapping functions receive it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta

__all__ = [
    "CacheLookup",
    "Change",
    "MapToOwners",
    "Predicate",
    "generation_changed",
    "is_edit",
    "labels_changed",
]


class CacheLookup(Protocol):
    """Port for lookups of cached objects."""

    def get_cached(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """Return a fresh copy of the cached object; None if it is not cached."""

    def get_uid(self, gvk: GroupVersionKind, key: ObjectKey) -> str:
        """Return the UID of the cached object; empty if it is not cached."""

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        """Return the keys of the objects that the index lists under the value."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one object.

    Args:
        gvk: The kind of the object.
        old: Its metadata before; None for a new object.
        new: Its metadata now; None for a deleted object, whose last state may never have been seen.
        lookup: Lookup of other cached objects.
    """

    gvk: GroupVersionKind
    old: ObjectMeta | None
    new: ObjectMeta | None
    lookup: CacheLookup

    @property
    def meta(self) -> ObjectMeta:
        """The metadata now, or the last metadata that was seen."""
        meta = self.new or self.old
        assert meta is not None, "a change has a state on one side"
        return meta

    @property
    def key(self) -> ObjectKey:
        """The namespace and name of the object."""
        return self.meta.key

    @property
    def object(self) -> Object | None:
        """The whole object now, decoded at each access; None after its deletion."""
        return None if self.new is None else self.lookup.get_cached(self.gvk, self.key)

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        """Return the keys of the objects of a kind that an index (`konverge.Operator.index`) lists under the value."""
        return self.lookup.list_keys_by_index(gvk, index, value)


Predicate: TypeAlias = Callable[[Change], bool]
"""Function that returns whether a change triggers a reconcile. The next reconcile sees a rejected change as well."""

MapToOwners: TypeAlias = Callable[[Change], Iterable[ObjectKey]]
"""Function that returns the owners that a change of a watched object concerns."""


def generation_changed(change: Change) -> bool:
    """Return True if the spec changed, or if the object was created, was deleted or began to be deleted.

    It returns False for a change of only status or metadata.
    """
    return is_edit(change.old, change.new)


def is_edit(old: ObjectMeta | None, new: ObjectMeta | None) -> bool:
    """Return whether the desired state of an object changed, by its metadata before and after."""
    if old is None or new is None:
        return True
    return old.generation != new.generation or old.is_deleting != new.is_deleting


def labels_changed(change: Change) -> bool:
    """Return True if the labels changed, or if the object was created or deleted."""
    return change.old is None or change.new is None or change.old.labels != change.new.labels
