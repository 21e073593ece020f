"""Lookup of the lock entry of a reference, and the closest entry when there is none. Pure.

First the written parameters are compared. If no entry matches, defaults count as written: those of the entry from when
it was locked, and the current ones of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping

from konverge_resolution._internal.lock_file import LockEntry, LockFile, drop_cache_mode
from konverge_resolution._internal.lock_validation import LockedReference, check_entry, find_defaults
from konverge_resolution._internal.reference import Reference, Value, redact_source, to_canonical_json
from konverge_resolution._internal.resolver_registry import ResolverRegistry

__all__ = ["LockLookup"]

_MAX_TEXT = 200
_MAX_DIFFERENCES = 3
"""Entries with more differences are about another reference, not a typing error."""


class LockLookup:
    """Lock file together with the resolvers of its references.

    Args:
        lock: The lock file.
        registry: The resolvers.

    Attributes:
        lock: The lock file with added entries.
    """

    def __init__(self, lock: LockFile, registry: ResolverRegistry) -> None:
        self.lock = lock
        self._registry = registry
        self._entries = {_build_key(entry.resolver, _merge_defaults(entry)): entry for entry in lock}

    def find(self, reference: Reference) -> LockEntry | None:
        """Return the entry of a reference; None when it is not locked.

        Raises:
            ResolutionError: ``Internal``: the resolver failed.
        """
        entry = self.lock.find(reference)
        if entry is not None:
            return entry
        return self._entries.get(_build_key(reference.resolver, self._apply_defaults(reference)))

    def check(self, entry: LockEntry, reference: Reference) -> LockedReference:
        """Check an entry against the reference for which it was found.

        `lock_validation.check_entry` has the rules.

        Raises:
            ResolutionError: The entry does not match the reference.
        """
        return check_entry(entry, reference, self._registry, file=self.lock.file)

    def add(self, entry: LockEntry) -> None:
        """Add one entry to the lock file."""
        self.lock = self.lock.with_entries(entry)
        self._entries[_build_key(entry.resolver, _merge_defaults(entry))] = entry

    def describe_missing(self, reference: Reference) -> str:
        """Describe the missing entry in one sentence. It names parameters, but no values: one may be a credential."""
        message = f"the lock file has no entry for this reference of resolver {reference.resolver!r}"
        requested = self._apply_defaults(reference)
        nearest: tuple[list[str], LockEntry] | None = None
        for entry in self.lock:
            if entry.resolver != reference.resolver:
                continue
            locked = _merge_defaults(entry)
            others = sorted(name for name in {*locked, *requested} if locked.get(name) != requested.get(name))
            is_near = len(others) <= _MAX_DIFFERENCES and len(others) < len({*locked, *requested})
            if is_near and (nearest is None or len(others) < len(nearest[0])):
                nearest = others, entry
        if nearest is None:
            return message
        others, entry = nearest
        place = redact_source(entry.source.uri)[:_MAX_TEXT]
        nearest_is = f"the nearest, for {place}," if place else "the nearest"
        return f"{message}; {nearest_is} differs in {', '.join(repr(name[:_MAX_TEXT]) for name in others)}"

    def _apply_defaults(self, reference: Reference) -> dict[str, Value]:
        return {**find_defaults(reference, self._registry), **drop_cache_mode(reference.params)}


def _merge_defaults(entry: LockEntry) -> Mapping[str, Value]:
    return {**entry.defaults, **entry.params}


def _build_key(resolver: str, params: Mapping[str, Value]) -> bytes:
    return to_canonical_json([resolver, params])
