"""What a client tells about its requests: the port that metrics implement. It may neither wait nor raise."""

from __future__ import annotations

from typing import Protocol

__all__ = ["RequestObserver"]


class RequestObserver(Protocol):
    """Hears of each attempt to send a request, streams included."""

    def on_request(
        self, method: str, path: str, *, code: str, seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """An attempt has ended: with that status code, or ``<error>`` when there was no answer.

        Args:
            method: The HTTP method.
            path: The path, without the query.
            code: The status, as text.
            seconds: From sending to the whole answer; to its head for a stream.
            sent_bytes: The body's size.
            received_bytes: The answer's body's size; 0 for a stream.
        """

    def on_retry(self, method: str, *, code: str) -> None:
        """The attempt that ended so is about to be repeated."""
