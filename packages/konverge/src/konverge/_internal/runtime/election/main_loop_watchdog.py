"""Decisions of the renewal thread about a main loop that does not run: stop the renewal, or end the process. Pure.

A replica whose main loop is blocked does no work, so it must not keep other replicas from it: after a while its Lease
is left to expire. A replica that has lost a Lease must stop the work for it before another replica begins. If the main
loop does not even process the loss, the process must end.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["MainLoopWatchdog", "WatchdogAction"]


class WatchdogAction(Enum):
    """Action of the renewal thread."""

    RENEW = "renew"
    SUSPEND = "suspend"
    EXIT = "exit"


class MainLoopWatchdog:
    """Judges the main loop by its heartbeat and by its acknowledgments.

    Args:
        now: The present time (monotonic seconds), which counts as a heartbeat.
        bound: Seconds without a heartbeat after which the Leases are not renewed.
        grace: Seconds in which the main loop must acknowledge the loss of a Lease.

    Attributes:
        beaten: Time of the last heartbeat; the main loop writes it from its own thread.
    """

    def __init__(self, now: float, *, bound: float, grace: float) -> None:
        self.beaten = now
        self._bound = bound
        self._grace = grace
        self._unacknowledged: dict[int, float] = {}

    def record_message(self, message: int, now: float) -> None:
        """Record that a loss was reported to the main loop."""
        self._unacknowledged[message] = now

    def acknowledge(self, message: int) -> None:
        """Record that the main loop has processed the report."""
        self._unacknowledged.pop(message, None)

    def compute_silence(self, now: float) -> float:
        """Return the seconds since the last heartbeat."""
        return now - self.beaten

    def decide(self, now: float) -> WatchdogAction:
        """Return the action for the present time."""
        oldest = min(list(self._unacknowledged.values()), default=now)
        if now - oldest > self._grace:
            return WatchdogAction.EXIT
        return WatchdogAction.SUSPEND if self.compute_silence(now) > self._bound else WatchdogAction.RENEW
