"""When the renewing thread stops renewing for a main loop that does not run, and when it ends the process. Pure.

A replica whose main loop is blocked does no work, so it should not keep others from doing it: after a while the Lease
is left to run out. And a replica that has lost a Lease must have stopped what the Lease was for before others begin:
if its main loop cannot even be told, the process has to end.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["MainLoopWatchdog", "WatchdogAction"]


class WatchdogAction(Enum):
    """What the thread should do."""

    RENEW = "renew"
    SUSPEND = "suspend"
    EXIT = "exit"


class MainLoopWatchdog:
    """Judges the main loop by its heartbeat and by whether it hears.

    Args:
        now: The present moment (monotonic seconds), which counts as a heartbeat.
        bound: After so many seconds without a heartbeat the Leases are not renewed.
        grace: How long the main loop may take to hear that a Lease is lost.

    Attributes:
        beaten: The moment of the last heartbeat; whoever beats writes it, from its own thread.
    """

    def __init__(self, now: float, *, bound: float, grace: float) -> None:
        self.beaten = now
        self._bound = bound
        self._grace = grace
        self._unacknowledged: dict[int, float] = {}

    def record_message(self, message: int, now: float) -> None:
        """The main loop has been sent word of a loss."""
        self._unacknowledged[message] = now

    def acknowledge(self, message: int) -> None:
        """The main loop has acted on it."""
        self._unacknowledged.pop(message, None)

    def compute_silence(self, now: float) -> float:
        """Since how many seconds there was no heartbeat."""
        return now - self.beaten

    def decide(self, now: float) -> WatchdogAction:
        """What to do now."""
        oldest = min(list(self._unacknowledged.values()), default=now)
        if now - oldest > self._grace:
            return WatchdogAction.EXIT
        return WatchdogAction.SUSPEND if self.compute_silence(now) > self._bound else WatchdogAction.RENEW
