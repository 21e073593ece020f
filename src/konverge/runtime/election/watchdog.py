"""When the renewing thread stops renewing for a main loop that does not run, and when it ends the process. Pure.

A replica whose main loop is blocked does no work, so it should not keep others from doing it: after a while the Lease
is left to run out. And a replica that has lost a Lease must have stopped what the Lease was for before others begin:
if its main loop cannot even be told, the process has to end.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Verdict", "Watchdog"]


class Verdict(Enum):
    """What the thread should do."""

    RENEW = "renew"
    SUSPEND = "suspend"
    EXIT = "exit"


class Watchdog:
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
        self._unheard: dict[int, float] = {}

    def told(self, message: int, now: float) -> None:
        """The main loop has been sent word of a loss."""
        self._unheard[message] = now

    def heard(self, message: int) -> None:
        """The main loop has acted on it."""
        self._unheard.pop(message, None)

    def silent(self, now: float) -> float:
        """Since how many seconds there was no heartbeat."""
        return now - self.beaten

    def judge(self, now: float) -> Verdict:
        """What to do now."""
        oldest = min(list(self._unheard.values()), default=now)
        if now - oldest > self._grace:
            return Verdict.EXIT
        return Verdict.SUSPEND if self.silent(now) > self._bound else Verdict.RENEW
