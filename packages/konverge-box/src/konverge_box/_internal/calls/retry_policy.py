"""The retries of a call and their delays."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.clock import Entropy

__all__ = ["NO_RETRIES", "RetryPolicy"]

_JITTER = 0.25


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of attempts and the delays between them.

    Args:
        attempts: The total number of attempts, at least one.
        initial_seconds: The delay after the first failure.
        max_seconds: The maximum delay, also if the server requests a longer one.
        factor: The factor by which each delay exceeds the previous one.
    """

    attempts: int = 1
    initial_seconds: float = 0.5
    max_seconds: float = 30.0
    factor: float = 2.0

    def compute_delay(self, failures: int, wanted: float | None, entropy: Entropy) -> float | None:
        """Return the delay in seconds after a number of failures in a row; None without a further attempt.

        A random part shortens the delay by up to a quarter, so that calls that failed together are not retried
        together. The delay is never shorter than the one that the server requests.

        Args:
            failures: The number of failures, at least one.
            wanted: The delay that the server requests; None without one.
            entropy: The source of random values.
        """
        if failures >= self.attempts:
            return None
        delay = min(self.max_seconds, self.initial_seconds * self.factor ** (failures - 1))
        delay *= entropy.uniform(1.0 - _JITTER, 1.0)
        return delay if wanted is None else max(delay, min(wanted, self.max_seconds))


NO_RETRIES = RetryPolicy()
"""The policy of a single attempt."""
