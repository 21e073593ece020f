"""Exponential backoff with jitter, for retries of any kind."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.clock import Entropy

__all__ = ["Backoff"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays after failures: each is twice as long as the one before, up to the cap, and has jitter.

    Args:
        first_seconds: Delay after the first failure, before jitter.
        cap_seconds: Longest delay, before jitter.
        jitter: Upper bound of the random part, as a fraction of the delay. It keeps clients that failed together from
            coming back together.
    """

    first_seconds: float = 0.1
    cap_seconds: float = 30.0
    jitter: float = 0.5

    def compute_delay(self, failures: int, entropy: Entropy) -> float:
        """Return the delay in seconds after a number of failures in a row (at least one)."""
        # Beyond 2**64 times the first delay the cap has long been reached, and floats would overflow.
        exponent = min(failures - 1, 64)
        seconds = min(self.cap_seconds, self.first_seconds * 2.0**exponent)
        return seconds * entropy.uniform(1.0, 1.0 + self.jitter)
