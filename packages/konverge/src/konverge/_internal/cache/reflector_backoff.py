"""The delay before the next request of a reflector: it grows with failures and shrinks with time in health. Pure."""

from __future__ import annotations

from konverge._internal.backoff import Backoff
from konverge.clock import Entropy

__all__ = ["ReflectorBackoff"]

_BACKOFF = Backoff(first_seconds=0.8, cap_seconds=30.0)

# Each such period without a failure cancels one failure. client-go cancels all of them after two minutes and none
# before: with one failure a minute, its reflector misses changes half of the time.
_FORGIVING_SECONDS = 3.0
_MAX_FAILURES = 7  # more failures do not make the delay longer

# A server that accepts a watch is up and not busy: if the connection breaks at once, the cause is probably a device in
# between. One request in 3 to 5 s does no harm; a longer delay (client-go: up to 30 s) only makes the cache stale.
_MAX_FAILURES_ONCE_OPEN = 3

# A waiting caller may know that the next attempt succeeds (it has just created a CustomResourceDefinition). This is the
# minimum delay for it.
_EXPEDITED_SECONDS = 1.0

# The server responded for another kind: either it is back, or only this kind fails.
_AFTER_RESPONSE_SECONDS = 3.0


class ReflectorBackoff:
    """The backoff of one collection. Times are monotonic seconds.

    Args:
        entropy: The source of jitter.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._failures = 0
        self._failed_at = 0.0
        self._healthy_since: float | None = None
        self._next_at = 0.0

    def seconds_left(self, now: float) -> float:
        """Return the seconds until the next attempt; 0 if it is due."""
        return max(0.0, self._next_at - now)

    def record_success(self, now: float) -> None:
        """Record that the server responded without an error."""
        if self._healthy_since is None:
            self._healthy_since = now

    def record_failure(self, now: float, *, is_cut: bool, requested_seconds: float = 0.0) -> None:
        """Record that an attempt failed.

        Args:
            now: The time of the failure.
            is_cut: Whether the connection of an open watch broke, which is not evidence against the server.
            requested_seconds: The delay that the server requested.
        """
        if self._healthy_since is not None:
            forgiven = int((now - self._healthy_since) / _FORGIVING_SECONDS)
            self._failures = max(0, self._failures - forgiven)
        self._failures = min(self._failures + 1, _MAX_FAILURES)
        self._failed_at = now
        self._healthy_since = None
        limit = _MAX_FAILURES_ONCE_OPEN if is_cut else _MAX_FAILURES
        delay = _BACKOFF.compute_delay(min(self._failures, limit), self._entropy)
        self._next_at = now + max(delay, requested_seconds)

    def delay_until(self, moment: float) -> None:
        """Delay the next attempt until the given time, without a failure."""
        self._next_at = moment

    def expedite(self, now: float) -> None:
        """Make the next attempt due a second after the last failure: a caller is waiting."""
        self._next_at = min(self._next_at, max(now, self._failed_at + _EXPEDITED_SECONDS))

    def on_server_response(self, now: float) -> None:
        """Make the next attempt due 3 to 4 s after the last failure: the server responded to another request."""
        spread = self._entropy.uniform(0.0, 1.0)
        self._next_at = min(self._next_at, max(now, self._failed_at + _AFTER_RESPONSE_SECONDS) + spread)
