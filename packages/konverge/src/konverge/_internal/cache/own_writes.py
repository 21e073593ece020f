"""The own writes that the watch has not reported yet: they show how far it lags. Pure."""

from __future__ import annotations

from collections import deque

__all__ = ["OwnWrites"]

# The reflector leaves a silent watch long before a process has written this many objects.
_MAX_WRITES = 10_000


class OwnWrites:
    """The own writes of one collection, oldest first, until they are confirmed.

    It counts at most 10,000 writes. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._unconfirmed: deque[tuple[int, float]] = deque()

    def __len__(self) -> int:
        return len(self._unconfirmed)

    @property
    def oldest_at(self) -> float | None:
        """The time of the response to the oldest of them; None if there is none."""
        return self._unconfirmed[0][1] if self._unconfirmed else None

    def add(self, revision: int, now: float) -> None:
        """Add a write whose response has that revision."""
        if len(self._unconfirmed) < _MAX_WRITES:
            self._unconfirmed.append((revision, now))

    def confirm(self, revision: int, listed_at: float) -> None:
        """Remove the writes that the cache is known to include.

        Args:
            revision: The revision up to which the watch has reported everything.
            listed_at: The time at which the last whole list was requested. The list includes every write with an
                earlier response, even if the storage was set back and the watch never reaches that revision.
        """
        while self._unconfirmed and (self._unconfirmed[0][0] <= revision or self._unconfirmed[0][1] < listed_at):
            self._unconfirmed.popleft()
