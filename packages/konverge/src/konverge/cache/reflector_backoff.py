"""How long to wait before the server is asked again: longer after each failure, shorter while all is well. Pure."""

from __future__ import annotations

from konverge.client.retries import Backoff
from konverge.clock import Entropy

__all__ = ["ReflectorBackoff"]

_BACKOFF = Backoff(first_seconds=0.8, cap_seconds=30.0)

# Each so many seconds in which all was well take one failure back. client-go forgives all of them after two minutes
# and nothing before: whoever fails every minute is blind for half of the time there.
_FORGIVING_SECONDS = 3.0
_MAX_FAILURES = 7  # more do not make the pause longer

# A server that lets a watch be opened is up and not busy: that the connection broke at once is rather the doing of
# something on the way. One request in 3 to 5 s does no harm, and who waits longer (client-go does, up to 30 s) is blind
# for nothing.
_MAX_FAILURES_ONCE_OPEN = 3

# Somebody waits who may know better (a CustomResourceDefinition that was just made): not more often than that.
_EXPEDITED_SECONDS = 1.0

# The server has answered a request about another kind: it is back, or it is this kind that it does not answer for.
_AFTER_RESPONSE_SECONDS = 3.0


class ReflectorBackoff:
    """Of one collection. Times are monotonic seconds.

    Args:
        entropy: Draws the jitter.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._failures = 0
        self._failed_at = 0.0
        self._healthy_since: float | None = None
        self._next_at = 0.0

    def seconds_left(self, now: float) -> float:
        """How long it is until the next attempt; 0 when it is due."""
        return max(0.0, self._next_at - now)

    def record_success(self, now: float) -> None:
        """The server has answered as it should."""
        if self._healthy_since is None:
            self._healthy_since = now

    def record_failure(self, now: float, *, is_cut: bool, wanted_seconds: float = 0.0) -> None:
        """An attempt has failed.

        Args:
            now: The moment.
            is_cut: Whether the connection of an open watch broke, which says nothing against the server.
            wanted_seconds: The pause that the server has asked for.
        """
        if self._healthy_since is not None:
            forgiven = int((now - self._healthy_since) / _FORGIVING_SECONDS)
            self._failures = max(0, self._failures - forgiven)
        self._failures = min(self._failures + 1, _MAX_FAILURES)
        self._failed_at = now
        self._healthy_since = None
        most = _MAX_FAILURES_ONCE_OPEN if is_cut else _MAX_FAILURES
        pause = _BACKOFF.compute_delay(min(self._failures, most), self._entropy)
        self._next_at = now + max(pause, wanted_seconds)

    def delay_until(self, moment: float) -> None:
        """Nothing has failed, but the next attempt is not before then."""
        self._next_at = moment

    def expedite(self, now: float) -> None:
        """Somebody waits: the next attempt is due a second after the last one that failed."""
        self._next_at = min(self._next_at, max(now, self._failed_at + _EXPEDITED_SECONDS))

    def on_server_response(self, now: float) -> None:
        """The server has answered another request: the next attempt is due 3 to 4 s after the last one that failed."""
        spread = self._entropy.uniform(0.0, 1.0)
        self._next_at = min(self._next_at, max(now, self._failed_at + _AFTER_RESPONSE_SECONDS) + spread)
