"""Routing of changes: from the metadata of an object to the owners to reconcile. Pure, except for author functions.

An object concerns an owner in four cases:

* It *is* the owner.
* The owner controls it: the one owner reference with ``controller: true``, matched by group, kind and UID, since the
  version in a reference has no meaning.
* A reconcile of the owner read it.
* A watch maps it to the owner.

Every change enqueues the owners that it concerns; an own write enqueues its writer too. The reconcile that follows
finds no difference and sends no request. The `Breaker` slows down an owner that changes something each time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta, OwnerReference
from konverge._internal.runtime.changes import CacheLookup, Change, MapToOwners, Predicate
from konverge._internal.runtime.read_tracking import ReadingOwner, ReadTracker

__all__ = ["MAX_MAPPED", "EventRouter", "RoutedKind", "WatchedKind"]

_log = logging.getLogger("konverge.runtime")

# One change may concern every owner, but a mapping function must not yield owners endlessly.
MAX_MAPPED = 100_000


@dataclass(frozen=True, slots=True)
class RoutedKind:
    """A kind whose objects are owners.

    Args:
        gvk: The kind.
        namespaced: Whether its objects are in namespaces.
        when: Selects the changes of an owner that trigger its reconcile; None for all.
    """

    gvk: GroupVersionKind
    namespaced: bool
    when: Predicate | None = None


@dataclass(frozen=True, slots=True)
class WatchedKind:
    """A kind whose changes concern owners that neither control nor read the object.

    Args:
        gvk: The kind.
        owner: The kind of the owners.
        owners_of: Maps one change to owners.
        when: Selects the changes; None for all.
    """

    gvk: GroupVersionKind
    owner: GroupVersionKind
    owners_of: MapToOwners
    when: Predicate | None = None


class EventRouter:
    """Finds the owners that a change concerns, and the objects that the caches need.

    Args:
        reads: The reads of all owners.
        lookup: Cached objects for predicates and mapping functions.
        holds: Returns for a UID whether the owner, and the objects that it controls, are to be cached.
    """

    def __init__(
        self, reads: ReadTracker, *, lookup: CacheLookup, holds: Callable[[str], bool] = lambda uid: True
    ) -> None:
        self._read_tracker = reads
        self._lookup = lookup
        self._holds = holds
        self._kinds: dict[tuple[str, str], RoutedKind] = {}
        self._owners: dict[GroupVersionKind, RoutedKind] = {}
        self._watches: dict[GroupVersionKind, list[WatchedKind]] = {}
        self._open_kinds: set[GroupVersionKind] = set()

    def set_routes(self, kinds: Iterable[RoutedKind], watches: Iterable[WatchedKind] = ()) -> None:
        """Route changes to owners of these kinds, also through these watches."""
        for kind in kinds:
            self._kinds[kind.gvk.group_kind] = self._owners[kind.gvk] = kind
        for watch in watches:
            self._watches.setdefault(watch.gvk, []).append(watch)

    def open_kind(self, gvk: GroupVersionKind) -> None:
        """Route the changes of the kind from now on.

        Earlier changes belong to the first list of the kind. The reader that waits for that list sees them anyway.
        """
        self._open_kinds.add(gvk)

    def close_kind(self, gvk: GroupVersionKind) -> None:
        """Stop routing the changes of the kind: its watch has ended."""
        self._open_kinds.discard(gvk)

    def find_owners(
        self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None
    ) -> dict[ReadingOwner, str]:
        """Return the owners that a change concerns, each with the reason, in no particular order.

        Args:
            gvk: The kind of the object that changed.
            old: Its metadata before; None for a new object.
            new: Its metadata now; None for a deleted object.
        """
        meta = new or old
        if meta is None or gvk not in self._open_kinds:
            return {}
        owners = set(self._iter_owners(gvk, old, new))
        if not owners:
            return {}
        event = "added" if old is None else "deleted" if new is None else "changed"
        return dict.fromkeys(owners, f"{gvk.kind} {meta.key} {event}")

    def is_needed(self, gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
        """Return whether the caches need the object: an owner, or an object that is watched, controlled or read."""
        if gvk in self._watches or self._read_tracker.is_read(gvk, meta):
            return True
        if gvk in self._owners:
            return self._holds(meta.uid)
        reference = meta.controller
        return reference is not None and self._find_owner_kind(reference) is not None and self._holds(reference.uid)

    def is_always_watched(self, gvk: GroupVersionKind) -> bool:
        """Return whether the kind is watched even if no reconcile reads it."""
        return gvk in self._owners or gvk in self._watches

    def _iter_owners(
        self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None
    ) -> Iterator[ReadingOwner]:
        states = [state for state in (old, new) if state is not None]
        yield from self._read_tracker.find_readers(gvk, states)
        for state in states:  # a change of the controller concerns both owners
            controller = self._find_controller(state)
            if controller is not None:
                yield controller
        owned, watches = self._owners.get(gvk), self._watches.get(gvk)
        if owned is None and watches is None:
            return
        change = Change(gvk, old, new, self._lookup)
        # The deletion of an owner always counts: its cached state must be removed too.
        if owned is not None and (new is None or _matches_predicate(owned.when, change)):
            yield ReadingOwner(gvk, change.key)
        for watch in watches or ():
            if _matches_predicate(watch.when, change):
                yield from self._iter_mapped_owners(watch, change)

    def _iter_mapped_owners(self, watch: WatchedKind, change: Change) -> Iterator[ReadingOwner]:
        try:
            for number, key in enumerate(watch.owners_of(change)):
                if number == MAX_MAPPED:
                    raise ValueError(f"expected at most {MAX_MAPPED} owners, found more")
                if not _is_key(key):
                    raise TypeError(f"expected ObjectKeys of two strings, found {key!r:.100}")
                yield ReadingOwner(watch.owner, key)
        except Exception:  # noqa: BLE001  # author code: the change may concern other owners too
            _log.exception("%s %s: the function that maps it to %s failed", watch.gvk, change.key, watch.owner.kind)

    def _find_controller(self, meta: ObjectMeta) -> ReadingOwner | None:
        reference = meta.controller
        kind = None if reference is None else self._find_owner_kind(reference)
        if reference is None or kind is None:
            return None
        key = ObjectKey(meta.namespace if kind.namespaced else "", reference.name)
        # A name alone proves nothing: any client that may create a ConfigMap could enqueue, and so slow down, every
        # owner. An owner that is not cached yet is enqueued by its own arrival.
        return ReadingOwner(kind.gvk, key) if self._lookup.get_uid(kind.gvk, key) == reference.uid else None

    def _find_owner_kind(self, reference: OwnerReference) -> RoutedKind | None:
        return self._kinds.get(GroupVersionKind.parse(reference.api_version, reference.kind).group_kind)


def _is_key(value: object) -> bool:
    return isinstance(value, ObjectKey) and all(isinstance(part, str) for part in (*value,))


def _matches_predicate(when: Predicate | None, change: Change) -> bool:
    if when is None:
        return True
    try:
        return bool(when(change))
    except Exception:  # noqa: BLE001  # a superfluous reconcile is better than a lost change
        _log.exception("%s %s: a predicate failed; the change counts", change.gvk.kind, change.key)
        return True
