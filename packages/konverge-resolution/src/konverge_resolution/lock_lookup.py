"""Which entry of a lock file a reference has, and what the nearest one has otherwise when there is none. Pure.

A reference is found by what was written. Where that is not there, its resolver's defaults count as written: those of
the entry as they were when it was locked, those of the reference as they are now.
"""

from __future__ import annotations

from collections.abc import Mapping

from konverge_resolution.lock_file import LockEntry, LockFile, drop_cache_mode
from konverge_resolution.lock_validation import LockedReference, check_entry, find_defaults
from konverge_resolution.reference import Reference, Value, redact_source, to_canonical_json
from konverge_resolution.resolver_registry import ResolverRegistry

__all__ = ["LockLookup"]

_MAX_TEXT = 200
_MAX_DIFFERENCES = 3
"""What differs in more is another reference, and no slip."""


class LockLookup:
    """A lock file, and the resolvers that its references are for.

    Args:
        lock: The lock file.
        registry: The resolvers.

    Attributes:
        lock: With what was added.
    """

    def __init__(self, lock: LockFile, registry: ResolverRegistry) -> None:
        self.lock = lock
        self._registry = registry
        self._entries = {_build_key(entry.resolver, _merge_defaults(entry)): entry for entry in lock}

    def find(self, reference: Reference) -> LockEntry | None:
        """What a reference came to; None when it is not locked.

        Raises:
            ResolutionError: ``Internal``: its resolver failed.
        """
        found = self.lock.find(reference)
        return (
            self._entries.get(_build_key(reference.resolver, self._apply_defaults(reference)))
            if found is None
            else found
        )

    def check(self, entry: LockEntry, reference: Reference) -> LockedReference:
        """Check an entry against the reference for which it was found.

        `konverge_resolution.lock_validation.check_entry` has the rules.

        Raises:
            ResolutionError: It does not fit.
        """
        return check_entry(entry, reference, self._registry, file=self.lock.file)

    def add(self, entry: LockEntry) -> None:
        """Have one more entry."""
        self.lock = self.lock.with_entries(entry)
        self._entries[_build_key(entry.resolver, _merge_defaults(entry))] = entry

    def describe_missing(self, reference: Reference) -> str:
        """Why there is no entry, as one sentence. It names parameters and no values: one may be a credential."""
        message = f"the lock file has no entry for this reference to resolver {reference.resolver!r}"
        wanted = self._apply_defaults(reference)
        nearest: tuple[list[str], LockEntry] | None = None
        for entry in self.lock:
            if entry.resolver != reference.resolver:
                continue
            found = _merge_defaults(entry)
            others = sorted(name for name in {*found, *wanted} if found.get(name) != wanted.get(name))
            is_near = len(others) <= _MAX_DIFFERENCES and len(others) < len({*found, *wanted})
            if is_near and (nearest is None or len(others) < len(nearest[0])):
                nearest = others, entry
        if nearest is None:
            return message
        others, entry = nearest
        place = redact_source(entry.source.uri)[:_MAX_TEXT]
        nearest_is = f"the nearest, for {place}," if place else "the nearest"
        return f"{message}; {nearest_is} differs in {', '.join(repr(each[:_MAX_TEXT]) for each in others)}"

    def _apply_defaults(self, reference: Reference) -> dict[str, Value]:
        return {**find_defaults(reference, self._registry), **drop_cache_mode(reference.params)}


def _merge_defaults(entry: LockEntry) -> Mapping[str, Value]:
    return {**entry.defaults, **entry.params}


def _build_key(resolver: str, params: Mapping[str, Value]) -> bytes:
    return to_canonical_json([resolver, params])
