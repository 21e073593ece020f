"""What the collections of one server find out for each other. Pure.

* *It answers again.* While a server is away the pauses of each collection grow on their own. The first request that it
  answers lets the others try soon, too.
* *Its storage was set back.* A server whose etcd was restored from an older snapshot counts the same revisions again.
  What was known of any kind is void then, also where the new revisions have passed the old ones already. So the proof
  that one collection has found counts for all.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ServerState"]


class ServerState:
    """The state of one server, shared by the reflectors of its collections.

    Attributes:
        history: Grows by one each time that the storage is found to be set back. What was read under an earlier number
            is void.
    """

    def __init__(self) -> None:
        self.history = 0
        self._retries: set[Callable[[float], None]] = set()
        self._listeners: list[Callable[[], None]] = []

    def subscribe(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call the listener when collections may have something to do: the server answers again, or was set back.

        Returns:
            A function that ends the subscription.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def call_on_response(self, retry: Callable[[float], None]) -> None:
        """Call the function, once, at the next answer of the server, with the time of that."""
        self._retries.add(retry)

    def record_response(self, now: float) -> None:
        """Record that the server has answered as it should; whoever waits for that tries again."""
        if self._retries:
            waiting, self._retries = self._retries, set()
            for retry in waiting:
                retry(now)
            self._notify()

    def record_rollback(self) -> None:
        """Record that the storage was set back: everything has to be listed again."""
        self.history += 1
        self._notify()

    def _notify(self) -> None:
        for listener in tuple(self._listeners):
            listener()
