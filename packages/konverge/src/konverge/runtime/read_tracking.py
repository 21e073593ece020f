"""Who read what: so that a change of an object wakes the owners whose last pass looked at it. Pure.

An owner's reads are those of its last complete pass and of the one under way. A pass that fails may have stopped before
some of its reads, so what earlier passes read still counts then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import NamedTuple, TypeAlias

from konverge.kube import GroupVersionKind, ObjectKey
from konverge.kube.metadata import ObjectMeta
from konverge.kube.selectors import LabelSelector

__all__ = ["Read", "ReadList", "ReadObject", "ReadTracker", "ReadingOwner"]


class ReadingOwner(NamedTuple):
    """An owner whose passes read."""

    gvk: GroupVersionKind
    key: ObjectKey


class ReadObject(NamedTuple):
    """An object that is read, whether it exists or not. One that does not wake is held in memory, and no more."""

    gvk: GroupVersionKind
    key: ObjectKey
    triggers: bool = True


class ReadList(NamedTuple):
    """All objects of a kind that match, those to come included; held in memory and no more if it does not wake."""

    gvk: GroupVersionKind
    namespace: str
    labels: LabelSelector
    triggers: bool = True

    def matches(self, meta: ObjectMeta) -> bool:
        """Tell whether the object is one of them."""
        return self.namespace in ("", meta.namespace) and self.labels.matches(meta.labels)


Read: TypeAlias = ReadObject | ReadList

# Where lists stand that no one label is common to.
_ANY_LABEL = ("", "")


class ReadTracker:
    """The reads of all owners, both ways round."""

    def __init__(self) -> None:
        self._by_reader: dict[ReadingOwner, set[Read]] = {}
        self._readers: dict[Read, set[ReadingOwner]] = {}
        # Objects are found by their key. Lists are matched one by one, but only those of which a label fits: each owner
        # may have a list of its own.
        self._lists: dict[GroupVersionKind, dict[tuple[str, str], set[ReadList]]] = {}
        self._times_read: dict[GroupVersionKind, int] = {}
        self._under_way: dict[ReadingOwner, set[Read]] = {}

    def begin(self, reader: ReadingOwner) -> None:
        """A pass of the reader starts."""
        self._under_way[reader] = set()

    def record(self, reader: ReadingOwner, read: Read) -> None:
        """The reader reads that; from now on its changes concern the reader."""
        self._under_way.setdefault(reader, set()).add(read)
        readers = self._readers.get(read)
        if readers is None:
            readers = self._readers[read] = set()
            self._times_read[read.gvk] = self._times_read.get(read.gvk, 0) + 1
            if isinstance(read, ReadList):
                self._lists.setdefault(read.gvk, {}).setdefault(_choose_label(read), set()).add(read)
        readers.add(reader)
        self._by_reader.setdefault(reader, set()).add(read)

    def finish(self, reader: ReadingOwner, *, complete: bool) -> None:
        """The pass ended; when it was complete, what it did not read concerns the reader no longer."""
        read_now = self._under_way.pop(reader, set())
        if complete:
            self._remove_reads(reader, self._by_reader.get(reader, set()) - read_now)

    def forget(self, reader: ReadingOwner) -> None:
        """The reader is gone."""
        self._under_way.pop(reader, None)
        self._remove_reads(reader, set(self._by_reader.get(reader, ())))

    def find_readers(self, gvk: GroupVersionKind, states: Iterable[ObjectMeta]) -> Iterator[ReadingOwner]:
        """The owners that a change of an object from one of these states to another concerns; some more than once."""
        for meta in states:
            yield from self._readers.get(ReadObject(gvk, meta.key), ())
            for read in self._iter_matching_lists(gvk, meta):
                if read.triggers:
                    yield from self._readers[read]

    def is_read(self, gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
        """Tell whether anybody reads the object."""
        reads = (ReadObject(gvk, meta.key, wakes) for wakes in (True, False))
        return any(read in self._readers for read in reads) or any(self._iter_matching_lists(gvk, meta))

    def is_recorded(self, read: Read) -> bool:
        """Tell whether anybody has read just that."""
        return read in self._readers

    def list_kinds(self) -> Set[GroupVersionKind]:
        """The kinds of which something is read."""
        return self._times_read.keys()

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
        self._times_read[read.gvk] -= 1
        if not self._times_read[read.gvk]:
            del self._times_read[read.gvk]
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
    """A label that everything in the list has, to find the list by."""
    for requirement in read.labels.requirements:
        if requirement.operator == "in" and len(requirement.values) == 1:
            (value,) = requirement.values
            return requirement.key, value
    return _ANY_LABEL
