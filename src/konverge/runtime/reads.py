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

__all__ = ["Read", "ReadList", "ReadObject", "Reader", "Reads"]


class Reader(NamedTuple):
    """An owner whose passes read."""

    gvk: GroupVersionKind
    key: ObjectKey


class ReadObject(NamedTuple):
    """An object that is read, whether it exists or not. One that does not wake is held in memory, and no more."""

    gvk: GroupVersionKind
    key: ObjectKey
    wakes: bool = True


class ReadList(NamedTuple):
    """All objects of a kind that match, those to come included; held in memory and no more if it does not wake."""

    gvk: GroupVersionKind
    namespace: str
    labels: LabelSelector
    wakes: bool = True

    def matches(self, meta: ObjectMeta) -> bool:
        """Tell whether the object is one of them."""
        return self.namespace in ("", meta.namespace) and self.labels.matches(meta.labels)


Read: TypeAlias = ReadObject | ReadList

# Where lists stand that no one label is common to.
_ANY_LABEL = ("", "")


class Reads:
    """The reads of all owners, both ways round."""

    def __init__(self) -> None:
        self._by_reader: dict[Reader, set[Read]] = {}
        self._readers: dict[Read, set[Reader]] = {}
        # Objects are found by their key. Lists are matched one by one, but only those of which a label fits: each owner
        # may have a list of its own.
        self._lists: dict[GroupVersionKind, dict[tuple[str, str], set[ReadList]]] = {}
        self._times_read: dict[GroupVersionKind, int] = {}
        self._under_way: dict[Reader, set[Read]] = {}

    def begin(self, reader: Reader) -> None:
        """A pass of the reader starts."""
        self._under_way[reader] = set()

    def note(self, reader: Reader, read: Read) -> None:
        """The reader reads that; from now on its changes concern the reader."""
        self._under_way.setdefault(reader, set()).add(read)
        readers = self._readers.get(read)
        if readers is None:
            readers = self._readers[read] = set()
            self._times_read[read.gvk] = self._times_read.get(read.gvk, 0) + 1
            if isinstance(read, ReadList):
                self._lists.setdefault(read.gvk, {}).setdefault(_label_of(read), set()).add(read)
        readers.add(reader)
        self._by_reader.setdefault(reader, set()).add(read)

    def finish(self, reader: Reader, *, complete: bool) -> None:
        """The pass ended; when it was complete, what it did not read concerns the reader no longer."""
        read_now = self._under_way.pop(reader, set())
        if complete:
            self._drop(reader, self._by_reader.get(reader, set()) - read_now)

    def forget(self, reader: Reader) -> None:
        """The reader is gone."""
        self._under_way.pop(reader, None)
        self._drop(reader, set(self._by_reader.get(reader, ())))

    def readers_of(self, gvk: GroupVersionKind, states: Iterable[ObjectMeta]) -> Iterator[Reader]:
        """The owners that a change of an object from one of these states to another concerns; some more than once."""
        for meta in states:
            yield from self._readers.get(ReadObject(gvk, meta.key), ())
            for read in self._matching(gvk, meta):
                if read.wakes:
                    yield from self._readers[read]

    def is_read(self, gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
        """Tell whether anybody reads the object."""
        reads = (ReadObject(gvk, meta.key, wakes) for wakes in (True, False))
        return any(read in self._readers for read in reads) or any(self._matching(gvk, meta))

    def is_noted(self, read: Read) -> bool:
        """Tell whether anybody has read just that."""
        return read in self._readers

    def kinds(self) -> Set[GroupVersionKind]:
        """The kinds of which something is read."""
        return self._times_read.keys()

    def _drop(self, reader: Reader, dropped: Set[Read]) -> None:
        kept = self._by_reader.get(reader, set())
        kept.difference_update(dropped)
        if not kept:
            self._by_reader.pop(reader, None)
        for read in dropped:
            readers = self._readers[read]
            readers.discard(reader)
            if not readers:
                self._end(read)

    def _end(self, read: Read) -> None:
        del self._readers[read]
        self._times_read[read.gvk] -= 1
        if not self._times_read[read.gvk]:
            del self._times_read[read.gvk]
        if isinstance(read, ReadList):
            lists, label = self._lists[read.gvk], _label_of(read)
            lists[label].discard(read)
            if not lists[label]:
                del lists[label]
            if not lists:
                del self._lists[read.gvk]

    def _matching(self, gvk: GroupVersionKind, meta: ObjectMeta) -> Iterator[ReadList]:
        lists = self._lists.get(gvk)
        if lists is None:
            return
        for label in (_ANY_LABEL, *meta.labels.items()):
            for read in lists.get(label, ()):
                if read.matches(meta):
                    yield read


def _label_of(read: ReadList) -> tuple[str, str]:
    """A label that everything in the list has, to find the list by."""
    for requirement in read.labels.requirements:
        if requirement.operator == "in" and len(requirement.values) == 1:
            (value,) = requirement.values
            return requirement.key, value
    return _ANY_LABEL
