"""Progress of one resolution: its current phase and host, received bytes and retries.

The engine names the phase in the error of a time limit; an observer shows it to the user.
"""

from __future__ import annotations

import logging
from typing import Protocol
from urllib.parse import urlsplit

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
        is_logged: Log each change at DEBUG. The hosts of a resolution are public; the host of another request, for
            example of an external call of a box, can contain a value of a Secret.
    """

    def __init__(self, observer: ProgressObserver | None = None, *, is_logged: bool = False) -> None:
        self._phase = self._host = ""
        self._observer = observer
        self._is_logged = is_logged

    @property
    def is_observed(self) -> bool:
        """Tell whether there is an observer."""
        return self._observer is not None

    def describe(self, known: str) -> str:
        """Return the current phase, such as ``waiting for the response of https://example.com``; empty without one.

        A message can be seen by others. So it names only the host that the user knows, and no target of a redirect.

        Args:
            known: The address of the source.
        """
        if not self._host:
            return self._phase
        netloc = urlsplit(self._host if "://" in self._host else f"//{self._host}").netloc
        return f"{self._phase} {self._host if netloc == urlsplit(known).netloc else 'another server'}"

    def wait_for_slot(self) -> None:
        """Record that the resolution waits until other calls of the same remote have ended."""
        self._phase, self._host = "waiting for a free slot of its remote", ""

    def enter(self, phase: str, host: str) -> None:
        """Begin a phase, such as ``connecting to`` with its host."""
        if (phase, host) == (self._phase, self._host):
            return
        self._phase, self._host = phase, host
        if self._is_logged:
            _log.debug("%s %s", phase, host)
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
        self._phase, self._host = f"waiting to retry after {reason}: {message}", ""
        if self._is_logged:
            _log.debug("retry in %.1f s: %s: %s", seconds, reason, message)
        if self._observer is not None:
            self._observer.on_retry(f"{reason}: {message}", seconds)
