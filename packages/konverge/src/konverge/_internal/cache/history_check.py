"""A check that cached objects belong to the history that the server has now. Pure.

A proof counts for all collections of the server (`cache.server_state`). A mere contradiction leads to a relist
of the collection, at most once in ten minutes.
"""

from __future__ import annotations

from konverge._internal.cache.cached_object import RawObject, parse_item
from konverge._internal.cache.reflector_steps import HistoryComparison
from konverge._internal.cache.server_state import ServerState
from konverge._internal.cache.store import Store
from konverge._internal.client.client import ListPage
from konverge._internal.kube.metadata import parse_revision

__all__ = ["HistoryCheck"]

# A server that repeats old events must not cause a list for each of them.
_RELIST_INTERVAL_SECONDS = 600.0


class HistoryCheck:
    """The history check of one collection.

    After a watch that ended early, the server may be another one, or have another storage. That is a doubt. One small
    quorum read settles it.

    Args:
        store: The cached objects of the collection.
        server: The state that all collections of the server share.
    """

    def __init__(self, store: Store, server: ServerState) -> None:
        self._store = store
        self._server = server
        self._history = server.history
        self._is_doubtful = False
        self._has_contradiction = False
        self._relist_requested_at: float | None = None

    @property
    def is_invalidated(self) -> bool:
        """True if the server's storage was set back after this collection was read."""
        return self._history != self._server.history

    def adopt_history(self) -> None:
        """Adopt the server's present history: the cached revisions become void."""
        self._history = self._server.history
        self._store.invalidate()

    def mark_uncertain(self) -> None:
        """Record that the server's history may differ from the cached one."""
        self._is_doubtful = True

    def mark_trusted(self) -> None:
        """Record that there is no doubt: the collection was listed, or the server rejects the comparison."""
        self._is_doubtful = False

    def plan_comparison(self) -> HistoryComparison | None:
        """Return the read that shows whether the storage was set back; None if nothing suggests that it was."""
        if not self._is_doubtful:
            return None
        newest = self._store.find_newest_key()
        return HistoryComparison("", "") if newest is None else HistoryComparison(newest.namespace, newest.name)

    def detect_rollback(self, page: ListPage) -> bool:
        """Return True if the comparison of the newest cached object proves that the storage was set back.

        The proof is a collection older than the newest known revision, or another version of the object that is not
        newer than that revision. A deleted or newer object is only a contradiction: the watch should report it, and
        does not on a server that was set back and has caught up.
        """
        self._is_doubtful = False
        newest = self._store.find_newest_key()
        cached = None if newest is None else self._store.get_metadata(newest)
        newest_revision = self._store.newest_known_revision
        if 0 < parse_revision(page.resource_version) < newest_revision:
            return True
        if cached is None:
            return False
        live = {item.meta.key: item.meta for item in map(parse_item, page.items)}.get(cached.key)
        if live is not None and live.resource_version == cached.resource_version:
            return False
        if live is not None and 0 < live.revision <= newest_revision:
            return True
        self._has_contradiction = True
        return False

    def check_event(self, received: RawObject) -> None:
        """Record a contradiction if an event of a watch is not newer than the cached revision."""
        if 0 < received.meta.revision <= self._store.revision:
            self._has_contradiction = True

    def check_bookmark(self, resource_version: str) -> None:
        """Record a contradiction if a bookmark is older than the cached revision."""
        if 0 < parse_revision(resource_version) < self._store.revision:
            self._has_contradiction = True

    def request_relist(self, now: float) -> bool:
        """Return True if a contradiction requires a list now, and none was requested in the last ten minutes."""
        is_contradicted, self._has_contradiction = self._has_contradiction, False
        last = self._relist_requested_at
        if not is_contradicted or (last is not None and now - last < _RELIST_INTERVAL_SECONDS):
            return False
        self._relist_requested_at = now
        return True
