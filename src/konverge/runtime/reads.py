"""Who read what: so that a change of an object wakes the owners whose last pass looked at it. Pure.

An owner's reads are those of its last complete pass and of the one under way. A pass that fails may have stopped before
some of its reads, so what earlier passes read still counts then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import NamedTuple

from konverge.kube import GroupVersionKind, ObjectKey

__all__ = ["ReadObject", "Reader", "Reads"]


class Reader(NamedTuple):
    """An owner whose passes read."""

    gvk: GroupVersionKind
    key: ObjectKey


class ReadObject(NamedTuple):
    """An object that is read, whether it exists or not."""

    gvk: GroupVersionKind
    key: ObjectKey


class Reads:
    """The reads of all owners, both ways round."""

    def __init__(self) -> None:
        self._by_reader: dict[Reader, set[ReadObject]] = {}
        self._readers: dict[ReadObject, set[Reader]] = {}
        self._under_way: dict[Reader, Counter[ReadObject]] = {}

    def begin(self, reader: Reader) -> None:
        """A pass of the reader starts."""
        self._under_way[reader] = Counter()

    def note(self, reader: Reader, read: ReadObject) -> None:
        """The reader reads the object; from now on its changes concern the reader."""
        self._under_way.setdefault(reader, Counter())[read] += 1
        self._by_reader.setdefault(reader, set()).add(read)
        self._readers.setdefault(read, set()).add(reader)

    def finish(self, reader: Reader, *, complete: bool) -> None:
        """The pass ended; when it was complete, what it did not read concerns the reader no longer."""
        read_now = self._under_way.pop(reader, Counter())
        if complete:
            self._drop(reader, self._by_reader.get(reader, set()) - read_now.keys())

    def times_read(self, reader: Reader, read: ReadObject) -> int:
        """How often the pass under way has read the object."""
        return self._under_way.get(reader, Counter())[read]

    def forget(self, reader: Reader) -> None:
        """The reader is gone."""
        self._under_way.pop(reader, None)
        self._drop(reader, set(self._by_reader.get(reader, ())))

    def readers_of(self, read: ReadObject) -> Set[Reader]:
        """The owners that the object's changes concern."""
        return self._readers.get(read, frozenset())

    def is_read(self, read: ReadObject) -> bool:
        """Tell whether anybody reads the object."""
        return read in self._readers

    def _drop(self, reader: Reader, dropped: Set[ReadObject]) -> None:
        kept = self._by_reader.get(reader, set())
        kept.difference_update(dropped)
        if not kept:
            self._by_reader.pop(reader, None)
        for read in dropped:
            self._readers[read].discard(reader)
            if not self._readers[read]:
                del self._readers[read]
