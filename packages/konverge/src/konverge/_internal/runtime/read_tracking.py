"""The reads of all owners: a change of an object triggers the owners whose last reconcile read it. Pure.

The reads of an owner are those of its last complete reconcile and of the running one. A reconcile that fails may have
stopped before some of its reads, so the reads of earlier reconciles still count then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple, TypeAlias

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.kube.selectors import LabelSelector

__all__ = ["Read", "ReadList", "ReadObject", "ReadTracker", "ReadingOwner"]


class ReadingOwner(NamedTuple):
    """An owner whose reconciles read objects, or one of its tasks, whose reads trigger nothing."""

    gvk: GroupVersionKind
    key: ObjectKey
    task: str = ""


class ReadObject(NamedTuple):
    """An object that is read, whether it exists or not. One that does not trigger reconciles is only cached."""

    gvk: GroupVersionKind
    key: ObjectKey
    triggers: bool = True


class ReadList(NamedTuple):
    """All present and future objects of a kind that match. A list that does not trigger reconciles is only cached."""

    gvk: GroupVersionKind
    namespace: str
    labels: LabelSelector
    triggers: bool = True

    def matches(self, meta: ObjectMeta) -> bool:
        """Return whether the list contains the object."""
        return self.namespace in ("", meta.namespace) and self.labels.matches(meta.labels)


Read: TypeAlias = ReadObject | ReadList

# The index key of lists that do not require one particular label.
_ANY_LABEL = ("", "")


class ReadTracker:
    """The reads of all owners, indexed by reader and by read."""

    def __init__(self) -> None:
        self._by_reader: dict[ReadingOwner, set[Read]] = {}
        self._readers: dict[Read, set[ReadingOwner]] = {}
        # Objects are found by their key. Lists are matched one by one, but only those whose index label fits: each
        # owner may have its own list.
        self._lists: dict[GroupVersionKind, dict[tuple[str, str], set[ReadList]]] = {}
        self._read_counts: dict[GroupVersionKind, int] = {}
        self._running: dict[ReadingOwner, set[Read]] = {}

    def begin(self, reader: ReadingOwner) -> None:
        """Start to record the reads of a reconcile of the reader."""
        self._running[reader] = set()

    def record(self, reader: ReadingOwner, read: Read) -> None:
        """Record a read of the reader; changes of the object concern the reader from now on."""
        self._running.setdefault(reader, set()).add(read)
        readers = self._readers.get(read)
        if readers is None:
            readers = self._readers[read] = set()
            self._read_counts[read.gvk] = self._read_counts.get(read.gvk, 0) + 1
            if isinstance(read, ReadList):
                self._lists.setdefault(read.gvk, {}).setdefault(_choose_label(read), set()).add(read)
        readers.add(reader)
        self._by_reader.setdefault(reader, set()).add(read)

    def finish(self, reader: ReadingOwner, *, complete: bool) -> None:
        """End a reconcile; if it was complete, forget earlier reads that it did not repeat."""
        read_now = self._running.pop(reader, set())
        if complete:
            self._remove_reads(reader, self._by_reader.get(reader, set()) - read_now)

    def forget(self, reader: ReadingOwner) -> None:
        """Remove all reads of the reader."""
        self._running.pop(reader, None)
        self._remove_reads(reader, set(self._by_reader.get(reader, ())))

    def find_readers(self, gvk: GroupVersionKind, states: Iterable[ObjectMeta]) -> Iterator[ReadingOwner]:
        """Yield the readers that a change between these states of an object concerns; some more than once."""
        for meta in states:
            yield from self._readers.get(ReadObject(gvk, meta.key), ())
            for read in self._iter_matching_lists(gvk, meta):
                if read.triggers:
                    yield from self._readers[read]

    def is_read(self, gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
        """Return whether any owner reads the object."""
        reads = (ReadObject(gvk, meta.key, triggers) for triggers in (True, False))
        return any(read in self._readers for read in reads) or any(self._iter_matching_lists(gvk, meta))

    def is_recorded(self, read: Read) -> bool:
        """Return whether any owner has this exact read."""
        return read in self._readers

    def list_kinds(self) -> Set[GroupVersionKind]:
        """Return the kinds with at least one read."""
        return self._read_counts.keys()

    def _remove_reads(self, reader: ReadingOwner, dropped: Set[Read]) -> None:
        kept = self._by_reader.get(reader, set())
        kept.difference_update(dropped)
        if not kept:
            self._by_reader.pop(reader, None)
        for read in dropped:
            readers = self._readers[read]
            readers.discard(reader)
            if not readers:
                self._remove_read(read)

    def _remove_read(self, read: Read) -> None:
        del self._readers[read]
        self._read_counts[read.gvk] -= 1
        if not self._read_counts[read.gvk]:
            del self._read_counts[read.gvk]
        if isinstance(read, ReadList):
            lists, label = self._lists[read.gvk], _choose_label(read)
            lists[label].discard(read)
            if not lists[label]:
                del lists[label]
            if not lists:
                del self._lists[read.gvk]

    def _iter_matching_lists(self, gvk: GroupVersionKind, meta: ObjectMeta) -> Iterator[ReadList]:
        lists = self._lists.get(gvk)
        if lists is None:
            return
        for label in (_ANY_LABEL, *meta.labels.items()):
            for read in lists.get(label, ()):
                if read.matches(meta):
                    yield read


def _choose_label(read: ReadList) -> tuple[str, str]:
    """Return a label that every object in the list has, as its index key."""
    for requirement in read.labels.requirements:
        if requirement.operator == "in" and len(requirement.values) == 1:
            (value,) = requirement.values
            return requirement.key, value
    return _ANY_LABEL
