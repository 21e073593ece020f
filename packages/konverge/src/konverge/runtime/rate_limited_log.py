"""Warnings that whoever reaches a port could have as often as they like: few a minute, and how many there were."""

from __future__ import annotations

import logging

from konverge.clock import Clock

__all__ = ["RateLimitedLog"]

_PERIOD_SECONDS = 60.0


class RateLimitedLog:
    """Logs one warning of each reason a minute; the next one says how many were left out.

    Args:
        log: Where to.
        clock: The time.
    """

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._next_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def log_warning(self, reason: str, message: str) -> None:
        """Log the message, unless one of that reason was logged less than a minute ago.

        Args:
            reason: One of few: each is remembered for as long as this is.
            message: What is logged.
        """
        now = self._clock.monotonic()
        if now < self._next_at.get(reason, now):
            self._left_out[reason] = self._left_out.get(reason, 0) + 1
            return
        self._next_at[reason] = now + _PERIOD_SECONDS
        left_out = self._left_out.pop(reason, 0)
        self._log.warning("%s%s", message, f" ({left_out} more of these were not logged)" if left_out else "")

    def close(self) -> None:
        """Log how many were left out since the last warning of each reason."""
        for reason, left_out in self._left_out.items():
            self._log.warning("%s: %d more were not logged", reason, left_out)
        self._left_out.clear()
