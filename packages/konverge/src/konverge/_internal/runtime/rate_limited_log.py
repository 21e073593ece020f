"""Rate-limited warnings, for messages that any client of a port can cause: a few per minute, with their number."""

from __future__ import annotations

import logging

from konverge.clock import Clock

__all__ = ["RateLimitedLog"]

_PERIOD_SECONDS = 60.0


class RateLimitedLog:
    """Logs one warning per reason and minute; the next one contains the number of omitted warnings.

    Args:
        log: The logger that receives the warnings.
        clock: Source of time.
    """

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._next_at: dict[str, float] = {}
        self._omitted: dict[str, int] = {}

    def log_warning(self, reason: str, message: str) -> None:
        """Log the message, unless one with that reason was logged less than a minute ago.

        Args:
            reason: One of few: each stays in memory for the life of this object.
            message: The text of the warning.
        """
        now = self._clock.monotonic()
        if now < self._next_at.get(reason, now):
            self._omitted[reason] = self._omitted.get(reason, 0) + 1
            return
        self._next_at[reason] = now + _PERIOD_SECONDS
        omitted = self._omitted.pop(reason, 0)
        self._log.warning("%s%s", message, f" ({omitted} more of these were not logged)" if omitted else "")

    def close(self) -> None:
        """Log the number of warnings that were omitted since the last warning of each reason."""
        for reason, omitted in self._omitted.items():
            self._log.warning("%s: %d more were not logged", reason, omitted)
        self._omitted.clear()
