"""Whether what is held of a collection is of the history that its server has now. Pure.

Every proof counts for all collections of the server (`konverge.cache.server_state`). What only contradicts what is held
leads to a list, once in a while.
"""

from __future__ import annotations

from konverge.cache.cached_object import RawObject, parse_item
from konverge.cache.reflector_steps import HistoryComparison
from konverge.cache.server_state import ServerState
from konverge.cache.store import Store
from konverge.client.client import ListPage
from konverge.kube.metadata import parse_revision

__all__ = ["HistoryCheck"]

# A server that tells again and again what it has told before must not make a list of each time.
_RELIST_INTERVAL_SECONDS = 600.0


class HistoryCheck:
    """Checks one collection.

    After a watch that did not end at its time the server may be another one, or have another storage: that is a doubt,
    and one small quorum read settles it.

    Args:
        store: What is held of the collection.
        server: What is known of the server by all of its collections.
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
        """Whether the server's storage was set back since this collection was read."""
        return self._history != self._server.history

    def adopt_history(self) -> None:
        """Take up the present history: what is held is void."""
        self._history = self._server.history
        self._store.invalidate()

    def mark_uncertain(self) -> None:
        """Record that the server may have another history than the one that is held."""
        self._is_doubtful = True

    def mark_trusted(self) -> None:
        """Record that there is no doubt: the whole was listed, or the server refuses to be compared."""
        self._is_doubtful = False

    def plan_comparison(self) -> HistoryComparison | None:
        """What to read to settle a doubt; None when there is none."""
        if not self._is_doubtful:
            return None
        newest = self._store.find_newest_key()
        return HistoryComparison("", "") if newest is None else HistoryComparison(newest.namespace, newest.name)

    def detect_rollback(self, page: ListPage) -> bool:
        """Tell whether the answer to the comparison, about the newest object that is held, proves a set-back.

        That the collection is older than what is known proves it, and so does another version of the object that is not
        newer than all that is known. If the object has gone, or is newer, the watch should tell of that; on a server
        that was set back and has caught up it does not: that is a contradiction.
        """
        self._is_doubtful = False
        newest = self._store.find_newest_key()
        held = None if newest is None else self._store.get_metadata(newest)
        known = self._store.newest_known_revision
        if 0 < parse_revision(page.resource_version) < known:
            return True
        if held is None:
            return False
        live = {item.meta.key: item.meta for item in map(parse_item, page.items)}.get(held.key)
        if live is not None and live.resource_version == held.resource_version:
            return False
        if live is not None and 0 < live.revision <= known:
            return True
        self._has_contradiction = True
        return False

    def check_event(self, received: RawObject) -> None:
        """Note an event of a watch that is no newer than what is held."""
        if 0 < received.meta.revision <= self._store.revision:
            self._has_contradiction = True

    def check_bookmark(self, resource_version: str) -> None:
        """Note a bookmark that is older than what is held."""
        if 0 < parse_revision(resource_version) < self._store.revision:
            self._has_contradiction = True

    def request_relist(self, now: float) -> bool:
        """Tell whether a contradiction calls for a list now: not if another one did shortly before."""
        is_contradicted, self._has_contradiction = self._has_contradiction, False
        last = self._relist_requested_at
        if not is_contradicted or (last is not None and now - last < _RELIST_INTERVAL_SECONDS):
            return False
        self._relist_requested_at = now
        return True
