"""The watch that is open: its requested timeout, how long it has been open, and whether it brought events. Pure."""

from __future__ import annotations

from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.reflector_steps import OpenWatch
from konverge.clock import Entropy

__all__ = ["WatchProgress"]

# Each watch requests a random timeout in this range, so that the watches of a fleet do not all end together.
_WATCH_SECONDS = (300.0, 600.0)

# A watch that ends sooner without an event is a failure. Otherwise a server that always hangs up would receive
# requests without a delay.
_VERY_SHORT_SECONDS = 1.0

# A server may end a watch slightly before the requested timeout.
_EARLY_SECONDS = 5.0


class WatchProgress:
    """The progress of the watches of one collection, one watch at a time. Times are monotonic seconds.

    Args:
        entropy: The source of jitter.
        statistics: Counters of the informer.
    """

    def __init__(self, entropy: Entropy, statistics: InformerStatistics) -> None:
        self._entropy = entropy
        self._statistics = statistics
        self._timeout_seconds = 0.0
        self._opened_at: float | None = None
        self._got_events = False
        self._was_short = False
        self._was_short_before = False

    @property
    def is_open(self) -> bool:
        """True if a watch is open."""
        return self._opened_at is not None

    @property
    def ended_empty(self) -> bool:
        """True if the last watch that ended did so within a second and without an event."""
        return self._was_short and not self._got_events

    @property
    def ended_short_again(self) -> bool:
        """True if the last two watches that ended were both open for less than a second."""
        return self._was_short and self._was_short_before

    def plan(self, resource_version: str, *, initial_events: bool, idle_timeout_seconds: float) -> OpenWatch:
        """Return the step that opens the next watch."""
        self._timeout_seconds = self._entropy.uniform(*_WATCH_SECONDS)
        return OpenWatch(
            resource_version=resource_version,
            initial_events=initial_events,
            timeout_seconds=self._timeout_seconds,
            idle_timeout_seconds=idle_timeout_seconds,
        )

    def open(self, now: float) -> None:
        """Record that the watch is open."""
        self._statistics.watches += 1
        self._opened_at = now
        self._got_events = False

    def record_event(self) -> None:
        """Record that the open watch sent an event or a bookmark."""
        self._got_events = True

    def open_seconds(self, now: float) -> float:
        """Return how long the watch has been open; 0 if none is open."""
        return 0.0 if self._opened_at is None else now - self._opened_at

    def is_early(self, now: float) -> bool:
        """Return True if an open watch would end before its timeout if it ended now."""
        return self.is_open and self.open_seconds(now) < self._timeout_seconds - _EARLY_SECONDS

    def was_useful(self, now: float) -> bool:
        """Return True if the open watch sent an event, or was open long enough to send one."""
        return self._got_events or (self.is_open and self.open_seconds(now) >= _VERY_SHORT_SECONDS)

    def close(self, now: float) -> float:
        """Count the open watch, if any, as closed; return how long it was open, in seconds."""
        seconds = self.open_seconds(now)
        self._statistics.watch_seconds += seconds
        self._opened_at = None
        return seconds

    def end(self, now: float) -> float:
        """Close a watch that the server ended.

        Returns:
            The earliest time for the next watch after short ones: a second after this one opened.
        """
        seconds = self.close(now)
        self._was_short_before, self._was_short = self._was_short, seconds < _VERY_SHORT_SECONDS
        if self.ended_empty:
            self._statistics.short_watches += 1
        return now - seconds + _VERY_SHORT_SECONDS
