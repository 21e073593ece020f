"""Which of our own writes the watch has not shown yet: how far it lags behind what this process knows. Pure."""

from __future__ import annotations

from collections import deque

__all__ = ["OwnWrites"]

# A watch that has been silent is given up long before a process has written that much.
_MAX_WRITES = 10_000


class OwnWrites:
    """The answered writes of one collection, oldest first, until they are confirmed.

    At most 10,000 are counted. Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._unconfirmed: deque[tuple[int, float]] = deque()

    def __len__(self) -> int:
        return len(self._unconfirmed)

    @property
    def oldest_at(self) -> float | None:
        """When the oldest of them was answered; None when there is none."""
        return self._unconfirmed[0][1] if self._unconfirmed else None

    def add(self, revision: int, now: float) -> None:
        """A write has been answered with that revision."""
        if len(self._unconfirmed) < _MAX_WRITES:
            self._unconfirmed.append((revision, now))

    def confirm(self, revision: int, listed_at: float) -> None:
        """Forget what is no news any more.

        Args:
            revision: The watch has told everything up to there.
            listed_at: When the last whole list was asked for. It holds every write that was answered before, also of a
                server whose storage was set back, and whose watch may never come to such a revision.
        """
        while self._unconfirmed and (self._unconfirmed[0][0] <= revision or self._unconfirmed[0][1] < listed_at):
            self._unconfirmed.popleft()
