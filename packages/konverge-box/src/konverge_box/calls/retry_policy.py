"""Whether a call is tried again, and after which pause."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.clock import Entropy

__all__ = ["NO_RETRIES", "RetryPolicy"]

_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often something is tried in all, and how long the pauses between are.

    Args:
        attempts: At least one.
        initial_seconds: The pause after the first failure.
        max_seconds: What no pause exceeds, whatever the server asks for.
        factor: How much longer each pause is than the one before.
    """

    attempts: int = 1
    initial_seconds: float = 0.5
    max_seconds: float = 30.0
    factor: float = 2.0

    def compute_delay(self, failures: int, wanted: float | None, entropy: Entropy) -> float | None:
        """The pause in seconds after so many failures in a row; None when it is not tried again.

        It is drawn up to a quarter shorter, so that what failed together does not come back together; a server that
        says when to come back is not asked sooner.

        Args:
            failures: At least one.
            wanted: What the server asked for; None for nothing.
            entropy: What draws.
        """
        if failures >= self.attempts:
            return None
        pause = min(self.max_seconds, self.initial_seconds * self.factor ** (failures - 1))
        pause *= entropy.uniform(1.0 - _JITTER, 1.0)
        return pause if wanted is None else max(pause, min(wanted, self.max_seconds))


NO_RETRIES = RetryPolicy()
"""Tried once."""
