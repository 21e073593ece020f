"""Which entry of a lock file a reference has, and what the nearest one has otherwise when there is none. Pure.

A reference is found by what was written. Where that is not there, its resolver's defaults count as written: those of
the entry as they were when it was locked, those of the reference as they are now.
"""

from __future__ import annotations

from collections.abc import Mapping

from konverge.resolution.lock import Lock, LockEntry, named
from konverge.resolution.lock_checks import LockedReference, check_entry, defaults_of
from konverge.resolution.reference import Reference, Value, canonical_json, shown_address
from konverge.resolution.registry import Registry

__all__ = ["LockLookup"]

_LONGEST_SHOWN = 200
_MOST_TOLD = 3
"""What differs in more is another reference, and no slip."""


class LockLookup:
    """A lock file, and the resolvers that its references are for.

    Args:
        lock: The lock file.
        registry: The resolvers.

    Attributes:
        lock: With what was added.
    """

    def __init__(self, lock: Lock, registry: Registry) -> None:
        self.lock = lock
        self._registry = registry
        self._taken = {_key(entry.resolver, _taken(entry)): entry for entry in lock}

    def find(self, reference: Reference) -> LockEntry | None:
        """What a reference came to; None when it is not locked.

        Raises:
            ResolutionError: ``Internal``: its resolver failed.
        """
        found = self.lock.find(reference)
        return self._taken.get(_key(reference.resolver, self._as_taken(reference))) if found is None else found

    def check(self, entry: LockEntry, reference: Reference) -> LockedReference:
        """Check an entry against the reference for which it was found (`konverge.resolution.lock_checks.check_entry`).

        Raises:
            ResolutionError: It does not fit.
        """
        return check_entry(entry, reference, self._registry, file=self.lock.file)

    def add(self, entry: LockEntry) -> None:
        """Have one more entry."""
        self.lock = self.lock.having(entry)
        self._taken[_key(entry.resolver, _taken(entry))] = entry

    def missing(self, reference: Reference) -> str:
        """Why there is no entry, as one sentence. It names parameters and no values: one may be a credential."""
        told = f"the lock file has no entry for this reference to resolver {reference.resolver!r}"
        wanted = self._as_taken(reference)
        nearest: tuple[list[str], LockEntry] | None = None
        for entry in self.lock:
            if entry.resolver != reference.resolver:
                continue
            found = _taken(entry)
            others = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
            is_near = len(others) <= _MOST_TOLD and len(others) < len({*found, *wanted})
            if is_near and (nearest is None or len(others) < len(nearest[0])):
                nearest = others, entry
        if nearest is None:
            return told
        others, entry = nearest
        place = shown_address(entry.source.uri)[:_LONGEST_SHOWN]
        nearest_is = f"the nearest, for {place}," if place else "the nearest"
        return f"{told}; {nearest_is} differs in {', '.join(repr(each[:_LONGEST_SHOWN]) for each in others)}"

    def _as_taken(self, reference: Reference) -> dict[str, Value]:
        return {**defaults_of(reference, self._registry), **named(reference.params)}


def _taken(entry: LockEntry) -> Mapping[str, Value]:
    return {**entry.defaults, **entry.params}


def _key(resolver: str, params: Mapping[str, Value]) -> bytes:
    return canonical_json([resolver, params])
