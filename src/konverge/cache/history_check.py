"""Whether what is held of a collection is of the history that its server has now. Pure.

Every proof counts for all collections of the server (`konverge.cache.server_state`). What only contradicts what is held
leads to a list, once in a while.
"""

from __future__ import annotations

from konverge.cache.entries import Received, received_item
from konverge.cache.server_state import ServerState
from konverge.cache.steps import Comparison
from konverge.cache.store import Store
from konverge.client.client import ListPage
from konverge.kube.metadata import revision_of

__all__ = ["HistoryCheck"]

# A server that tells again and again what it has told before must not make a list of each time.
_LIST_AGAIN_SECONDS = 600.0


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
        self._wanted_list_at: float | None = None

    @property
    def is_void(self) -> bool:
        """Whether the server's storage was set back since this collection was read."""
        return self._history != self._server.history

    def begin(self) -> None:
        """Take up the present history: what is held is void."""
        self._history = self._server.history
        self._store.void()

    def doubt(self) -> None:
        """Record that the server may have another history than the one that is held."""
        self._is_doubtful = True

    def trust(self) -> None:
        """Record that there is no doubt: the whole was listed, or the server refuses to be compared."""
        self._is_doubtful = False

    def comparison(self) -> Comparison | None:
        """What to read to settle a doubt; None when there is none."""
        if not self._is_doubtful:
            return None
        newest = self._store.newest_key()
        return Comparison("", "") if newest is None else Comparison(newest.namespace, newest.name)

    def compare(self, page: ListPage) -> bool:
        """Tell whether the answer to the comparison, about the newest object that is held, proves a set-back.

        That the collection is older than what is known proves it, and so does another version of the object that is not
        newer than all that is known. If the object has gone, or is newer, the watch should tell of that; on a server
        that was set back and has caught up it does not: that is a contradiction.
        """
        self._is_doubtful = False
        newest = self._store.newest_key()
        held = None if newest is None else self._store.metadata(newest)
        known = self._store.newest_known
        if 0 < revision_of(page.resource_version) < known:
            return True
        if held is None:
            return False
        live = {item.meta.key: item.meta for item in map(received_item, page.items)}.get(held.key)
        if live is not None and live.resource_version == held.resource_version:
            return False
        if live is not None and 0 < live.revision <= known:
            return True
        self._has_contradiction = True
        return False

    def check_event(self, received: Received) -> None:
        """Note an event of a watch that is no newer than what is held."""
        if 0 < received.meta.revision <= self._store.revision:
            self._has_contradiction = True

    def check_bookmark(self, resource_version: str) -> None:
        """Note a bookmark that is older than what is held."""
        if 0 < revision_of(resource_version) < self._store.revision:
            self._has_contradiction = True

    def wants_list(self, now: float) -> bool:
        """Tell whether a contradiction calls for a list now: not if another one did shortly before."""
        is_contradicted, self._has_contradiction = self._has_contradiction, False
        last = self._wanted_list_at
        if not is_contradicted or (last is not None and now - last < _LIST_AGAIN_SECONDS):
            return False
        self._wanted_list_at = now
        return True
