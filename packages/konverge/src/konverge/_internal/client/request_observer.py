"""The observer of a client's requests, which metrics implement. It must neither block nor raise."""

from __future__ import annotations

from typing import Protocol

__all__ = ["RequestObserver"]


class RequestObserver(Protocol):
    """An observer of each attempt to send a request, streams included."""

    def on_request(
        self, method: str, path: str, *, code: str, seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """Record that an attempt ended: with that status code, or ``<error>`` without a response.

        Args:
            method: The HTTP method.
            path: The path, without the query.
            code: The status code, as text.
            seconds: The time from sending until the whole response; until its head for a stream.
            sent_bytes: The size of the request's body.
            received_bytes: The size of the response's body; 0 for a stream.
        """

    def on_retry(self, method: str, *, code: str) -> None:
        """Record that the client is about to repeat an attempt that ended with that code."""
