"""The port through which the webhook server reports: metrics implement it. No method may wait or raise."""

from __future__ import annotations

from typing import Protocol

__all__ = ["WebhookObserver"]


class WebhookObserver(Protocol):
    """Port for the metrics of webhook requests; ``webhook`` is the path of the request."""

    def on_start(self, webhook: str) -> None:
        """Record a request that has arrived."""

    def on_finish(self, webhook: str, code: int, *, seconds: float) -> None:
        """Record the response to a request with its HTTP status and duration; 499 for a client that disconnected."""

    def on_refusal(self, reason: str) -> None:
        """Record a request that was refused before any handler ran; the reason is one of few."""
