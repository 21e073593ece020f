"""Which owners a change wakes: those that it concerns, except for who made it. Pure.

Who writes gets the server's answer, so the watch event of that very write tells it nothing. The event may come before
the answer, though, and then nobody can say yet whose it is. Therefore what concerns the writer is held back until the
answer is there, and dropped only if it is the answered version; whatever else happened to the object wakes the writer,
for it may have decided by something older. (An event that comes after the answer is the store's to recognize.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from konverge.kube import GroupVersionKind
from konverge.kube.metadata import ObjectMeta
from konverge.runtime.reads import Reader, ReadObject
from konverge.runtime.routing import Routing

__all__ = ["Wake", "Waking"]

Wake: TypeAlias = Callable[[Reader, str], None]
"""Gets an owner that is to be reconciled, and why."""


@dataclass(slots=True)
class _Writes:
    """The writes of one owner to one object that have no answer yet, and what happened to the object meanwhile."""

    unanswered: int = 0
    own_versions: set[str] = field(default_factory=set)
    deleted_uids: set[str] = field(default_factory=set)
    held_back: list[tuple[ObjectMeta | None, ObjectMeta | None, str]] = field(default_factory=list)

    def is_own(self, old: ObjectMeta | None, new: ObjectMeta | None) -> bool:
        if new is not None:
            # With the same version on both sides it tells of somebody else's write before ours (`Store.put`).
            came_before = old is not None and old.resource_version == new.resource_version
            return new.resource_version in self.own_versions and not came_before
        return old is not None and old.uid in self.deleted_uids


class Waking:
    """Wakes owners.

    Args:
        routing: Says whom a change concerns.
        wake: Is called for each owner to wake.
    """

    def __init__(self, routing: Routing, wake: Wake) -> None:
        self._routing = routing
        self._wake = wake
        self._read_kinds: set[GroupVersionKind] = set()
        self._writes: dict[tuple[Reader, ReadObject], _Writes] = {}

    def kind_is_read(self, gvk: GroupVersionKind) -> None:
        """Objects of the kind are read from now on.

        Until then its changes wake nobody: they are those of its first list, and whoever waits for that sees it as it
        is.
        """
        self._read_kinds.add(gvk)

    def changed(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        """An object changed; None before: it came, None now: it went."""
        meta = new or old
        if meta is None or gvk not in self._read_kinds:
            return
        for reader, reason in self._routing.concerned(gvk, old, new).items():
            writes = self._writes.get((reader, ReadObject(gvk, meta.key)))
            if writes is None:
                self._wake(reader, reason)
            else:
                writes.held_back.append((old, new, reason))

    def write_begins(self, writer: Reader, written: ReadObject) -> None:
        """The owner sends a write of the object; `write_ends` must follow."""
        self._writes.setdefault((writer, written), _Writes()).unanswered += 1

    def write_ends(self, writer: Reader, written: ReadObject, *, version: str = "", deleted_uid: str = "") -> None:
        """The write was answered, or has failed; the informers have been told of the answer already.

        Args:
            writer: The owner.
            written: The object.
            version: The resource version that the server answered; empty without one.
            deleted_uid: The UID of the object that is gone now; empty when none is.
        """
        writes = self._writes[writer, written]
        writes.unanswered -= 1
        if version:
            writes.own_versions.add(version)
        if deleted_uid:
            writes.deleted_uids.add(deleted_uid)
        if writes.unanswered:
            return
        del self._writes[writer, written]
        foreign = [reason for old, new, reason in writes.held_back if not writes.is_own(old, new)]
        if foreign:
            self._wake(writer, foreign[-1])
