"""The state of one server that its collections share. Pure.

* *The server responds again.* While a server is away, the backoff of each collection grows separately. The first
  response lets the other collections retry soon, too.
* *The storage was set back.* A server whose etcd was restored from an older snapshot assigns the same revisions again.
  The cached objects of all kinds are void then, even if the new revisions are higher than the old ones already. So a
  proof that one collection finds counts for all.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ServerState"]


class ServerState:
    """The state of one server, shared by the reflectors of its collections.

    Attributes:
        history: The number of times that the storage was set back. Objects that were read under an earlier number are
            void.
    """

    def __init__(self) -> None:
        self.history: int = 0
        self._retries: set[Callable[[float], None]] = set()
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener if collections may have something to do: the server responds again, or was set back.

        Returns:
            A function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def call_on_response(self, retry: Callable[[float], None]) -> None:
        """Call the function once, at the next response of the server, with the time of the response."""
        self._retries.add(retry)

    def record_response(self, now: float) -> None:
        """Record that the server responded without an error; the waiting collections retry."""
        if self._retries:
            waiting, self._retries = self._retries, set()
            for retry in waiting:
                retry(now)
            self._notify()

    def record_rollback(self) -> None:
        """Record that the storage was set back: every collection must relist."""
        self.history += 1
        self._notify()

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()
