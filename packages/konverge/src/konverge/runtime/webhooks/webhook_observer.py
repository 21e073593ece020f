"""What the webhook server tells about its work: the port that metrics implement. None of them may wait or raise."""

from __future__ import annotations

from typing import Protocol

__all__ = ["WebhookObserver"]


class WebhookObserver(Protocol):
    """Hears of each request; ``webhook`` is the path that was asked."""

    def on_start(self, webhook: str) -> None:
        """A request has come in."""

    def on_finish(self, webhook: str, code: int, *, seconds: float) -> None:
        """Its answer went out with that HTTP status after so long; 499 when whoever asked went away."""

    def on_refusal(self, reason: str) -> None:
        """A request was answered without anybody having been asked; the reason is one of few."""
