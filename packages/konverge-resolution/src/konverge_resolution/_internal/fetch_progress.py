"""Progress of one resolution: its current phase and host, received bytes and retries.

The engine names the phase in the error of a time limit; an observer shows it to the user.
"""

from __future__ import annotations

import logging
from typing import Protocol

__all__ = ["FetchProgress", "ProgressObserver"]

_log = logging.getLogger("konverge.resolution")


class ProgressObserver(Protocol):
    """Receiver of the progress of all resolutions of a command; its methods return at once."""

    def on_phase(self, phase: str, host: str) -> None:
        """Record that a resolution waits for something else now.

        Args:
            phase: What it does, as a gerund: ``connecting to``.
            host: The host, or scheme, host and port.
        """

    def on_bytes(self, count: int) -> None:
        """Record received bytes."""

    def on_retry(self, reason: str, seconds: float) -> None:
        """Record that a call is repeated after a pause.

        Args:
            reason: The error of the last call.
            seconds: The pause in seconds.
        """


class FetchProgress:
    """Progress of one resolution.

    Args:
        observer: Receives each change; None for none.

    Attributes:
        phase: The current phase, as a gerund with its object: ``waiting for the response of https://example.com``;
            empty before the first one.
    """

    def __init__(self, observer: ProgressObserver | None = None) -> None:
        self.phase = ""
        self._observer = observer

    def enter(self, phase: str, host: str) -> None:
        """Begin a phase, such as ``connecting to`` with its host."""
        entered = f"{phase} {host}"
        if entered == self.phase:
            return
        self.phase = entered
        _log.debug("%s", entered)
        if self._observer is not None:
            self._observer.on_phase(phase, host)

    def add_bytes(self, count: int) -> None:
        """Count received bytes."""
        if self._observer is not None:
            self._observer.on_bytes(count)

    def record_retry(self, reason: str, message: str, seconds: float) -> None:
        """Record the pause before a retry.

        Args:
            reason: The reason word of the last error.
            message: Its message.
            seconds: The pause in seconds.
        """
        self.phase = f"waiting to retry after {reason}: {message}"
        _log.debug("retry in %.1f s: %s: %s", seconds, reason, message)
        if self._observer is not None:
            self._observer.on_retry(f"{reason}: {message}", seconds)
