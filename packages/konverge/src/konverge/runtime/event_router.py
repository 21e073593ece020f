"""Whom a change concerns: from an object's metadata to the owners that are to be reconciled.

Pure, but for what authors' predicates and mapping functions do.

An object concerns an owner if it *is* the owner, if the owner controls it (the one owner reference with ``controller:
true``, matched by group, kind and UID, since the version of a reference says nothing), if a pass of the owner read it,
or if a watch maps it to the owner. Every change wakes whom it concerns, an own write its writer too: the pass that
follows finds nothing to do and sends nothing, and whoever changes something each time is the `Breaker`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from konverge.kube import GroupVersionKind, ObjectKey
from konverge.kube.metadata import ObjectMeta, OwnerReference
from konverge.runtime.changes import CacheLookup, Change, MapToOwners, Predicate
from konverge.runtime.read_tracking import ReadingOwner, ReadTracker

__all__ = ["EventRouter", "RoutedKind", "WatchedKind"]

_log = logging.getLogger("konverge.runtime")

# One change may concern every owner there is, but not go on naming them for ever.
_MAX_MAPPED = 100_000


@dataclass(frozen=True, slots=True)
class RoutedKind:
    """A kind whose objects are owners here.

    Args:
        gvk: The kind.
        namespaced: Whether its objects are in namespaces.
        when: Which of an owner's own changes call for a pass; None for all.
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
        owners_of: Names them for one change.
        when: Which changes count; None for all.
    """

    gvk: GroupVersionKind
    owner: GroupVersionKind
    owners_of: MapToOwners
    when: Predicate | None = None


class EventRouter:
    """Finds the owners that a change concerns, and tells what the caches need to hold.

    Args:
        reads: Who read what.
        lookup: Where predicates and mapping functions may look.
        holds: Tells by its UID whether an owner, and what it controls, is to be held.
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
        """Route to owners of these kinds, also by these watches."""
        for kind in kinds:
            self._kinds[kind.gvk.group_kind] = self._owners[kind.gvk] = kind
        for watch in watches:
            self._watches.setdefault(watch.gvk, []).append(watch)

    def open_kind(self, gvk: GroupVersionKind) -> None:
        """The kind's changes count from now on.

        Until then they are those of its first list, and whoever waits for that sees it as it is.
        """
        self._open_kinds.add(gvk)

    def close_kind(self, gvk: GroupVersionKind) -> None:
        """The kind is watched no longer."""
        self._open_kinds.discard(gvk)

    def find_owners(
        self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None
    ) -> dict[ReadingOwner, str]:
        """The owners that a change concerns, each with the reason, in no particular order.

        Args:
            gvk: The kind of the object that changed.
            old: Its metadata before; None when it is new.
            new: Its metadata now; None when it is gone.
        """
        meta = new or old
        if meta is None or gvk not in self._open_kinds:
            return {}
        found = set(self._iter_owners(gvk, old, new))
        if not found:
            return {}
        what = "came" if old is None else "went" if new is None else "changed"
        return dict.fromkeys(found, f"{gvk.kind} {meta.key} {what}")

    def is_needed(self, gvk: GroupVersionKind, meta: ObjectMeta) -> bool:
        """Tell whether the caches are to hold the object: an owner, one that is watched, controlled or read."""
        if gvk in self._watches or self._read_tracker.is_read(gvk, meta):
            return True
        if gvk in self._owners:
            return self._holds(meta.uid)
        reference = meta.controller
        return reference is not None and self._find_owner_kind(reference) is not None and self._holds(reference.uid)

    def is_always_watched(self, gvk: GroupVersionKind) -> bool:
        """Tell whether the kind is watched even if nobody reads it."""
        return gvk in self._owners or gvk in self._watches

    def _iter_owners(
        self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None
    ) -> Iterator[ReadingOwner]:
        states = [state for state in (old, new) if state is not None]
        yield from self._read_tracker.find_readers(gvk, states)
        for state in states:  # an object that changes its owner concerns both
            controller = self._find_controller(state)
            if controller is not None:
                yield controller
        owned, watches = self._owners.get(gvk), self._watches.get(gvk)
        if owned is None and watches is None:
            return
        change = Change(gvk, old, new, self._lookup)
        # That an owner is gone always counts: what is known of it must go too.
        if owned is not None and (new is None or _matches_predicate(owned.when, change)):
            yield ReadingOwner(gvk, change.key)
        for watch in watches or ():
            if _matches_predicate(watch.when, change):
                yield from self._iter_mapped_owners(watch, change)

    def _iter_mapped_owners(self, watch: WatchedKind, change: Change) -> Iterator[ReadingOwner]:
        try:
            for number, key in enumerate(watch.owners_of(change)):
                if number == _MAX_MAPPED:
                    raise ValueError(f"it names more than {_MAX_MAPPED} owners")
                if not _is_key(key):
                    raise TypeError(f"expected ObjectKeys of two texts, found {key!r:.100}")
                yield ReadingOwner(watch.owner, key)
        except Exception:  # noqa: BLE001  # an author's code: the change concerns others too
            _log.exception("the function that maps %s to %s failed on %s", watch.gvk, watch.owner.kind, change.key)

    def _find_controller(self, meta: ObjectMeta) -> ReadingOwner | None:
        reference = meta.controller
        kind = None if reference is None else self._find_owner_kind(reference)
        if reference is None or kind is None:
            return None
        key = ObjectKey(meta.namespace if kind.namespaced else "", reference.name)
        # A name alone is anybody's to write: who may create a ConfigMap could wake, and so slow down, every owner. An
        # owner that is not held yet is woken by its own coming.
        return ReadingOwner(kind.gvk, key) if self._lookup.get_uid(kind.gvk, key) == reference.uid else None

    def _find_owner_kind(self, reference: OwnerReference) -> RoutedKind | None:
        return self._kinds.get(GroupVersionKind.parse(reference.api_version, reference.kind).group_kind)


def _is_key(found: object) -> bool:
    return isinstance(found, ObjectKey) and all(isinstance(part, str) for part in (*found,))


def _matches_predicate(when: Predicate | None, change: Change) -> bool:
    if when is None:
        return True
    try:
        return bool(when(change))
    except Exception:  # noqa: BLE001  # rather one pass too many than a change that nobody sees
        _log.exception("a predicate failed on %s %s", change.gvk.kind, change.key)
        return True
