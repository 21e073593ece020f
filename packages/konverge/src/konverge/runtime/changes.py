"""One change of a watched object, as a predicate or a mapping function gets it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta

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
    """What is held in memory of other objects."""

    def get_cached(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """The object as it is held, fresh; None when it is not."""

    def get_uid(self, gvk: GroupVersionKind, key: ObjectKey) -> str:
        """The UID of the object as it is held; empty when it is not."""

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        """The objects that the index has under that value."""


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to one object.

    Args:
        gvk: Its kind.
        old: Its metadata before; None when it came.
        new: Its metadata now; None when it went (its last state may never have been seen).
        lookup: Where else to look.
    """

    gvk: GroupVersionKind
    old: ObjectMeta | None
    new: ObjectMeta | None
    lookup: CacheLookup

    @property
    def meta(self) -> ObjectMeta:
        """The metadata now, or the last that was seen."""
        found = self.new or self.old
        assert found is not None, "a change has a state on one side"
        return found

    @property
    def key(self) -> ObjectKey:
        """Which object of its kind it is."""
        return self.meta.key

    @property
    def object(self) -> Object | None:
        """The whole object now, decoded afresh at each use; None when it has gone."""
        return None if self.new is None else self.lookup.get_cached(self.gvk, self.key)

    def list_keys_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[ObjectKey]:
        """The objects of a kind that an index (`konverge.Operator.index`) has under that value."""
        return self.lookup.list_keys_by_index(gvk, index, value)


Predicate: TypeAlias = Callable[[Change], bool]
"""Tells whether a change is worth a pass. What it refuses happens all the same, and the next pass sees it."""

MapToOwners: TypeAlias = Callable[[Change], Iterable[ObjectKey]]
"""Names the owners that a change of a watched object concerns."""


def generation_changed(change: Change) -> bool:
    """Let pass what changes the spec, comes, goes or begins to go; not what changes status or metadata alone."""
    return is_edit(change.old, change.new)


def is_edit(old: ObjectMeta | None, new: ObjectMeta | None) -> bool:
    """Tell whether something else is wanted of an object than before, by its metadata before and after."""
    if old is None or new is None:
        return True
    return old.generation != new.generation or old.is_deleting != new.is_deleting


def labels_changed(change: Change) -> bool:
    """Let pass what changes the labels, comes or goes."""
    return change.old is None or change.new is None or change.old.labels != change.new.labels
