"""The breaker for loops of successful reconciles: it slows down a key that never becomes steady. Pure.

A reconcile that fails waits for its backoff. One that succeeds and changes an object triggers its own key again. If it
makes a change each time, or if two controllers undo each other's changes, this loop never ends and runs at full speed.

Each key has a bucket of tokens that refills slowly. A reconcile takes one token; an empty bucket opens the breaker.
The key then gets one reconcile per probe interval, until no event requests it for a while. A reconcile that only the
key's own `Result.requeue_after` requested takes no token: its author chose the interval. A user who edits the object
meanwhile does not wait for the loop: the edit is reconciled at once, unless the edits are a loop themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import Generic, TypeVar

__all__ = ["Breaker", "BreakerOpened", "BreakerOptions"]

K = TypeVar("K", bound=Hashable)

# Sources are recorded to report the most frequent one. A loop has one or two.
_MAX_SOURCES = 16
_SWEEP_EVERY = 1024


@dataclass(frozen=True, slots=True)
class BreakerOptions:
    """Limits on the reconciles of one key.

    Args:
        burst: Number of reconciles in quick succession; the creation of the largest owner takes a fraction of that.
        refill: Interval after which one more reconcile is allowed.
        probe: Interval between reconciles of a key whose breaker is open.
        calm: Time without a request for the key after which the breaker closes. It must exceed `probe`, or each probe
            of a loop would close the breaker.
        edit: Minimum interval between immediate reconciles for edits of the object while the breaker is open.
    """

    burst: int = 100
    refill: timedelta = timedelta(seconds=1)
    probe: timedelta = timedelta(seconds=30)
    calm: timedelta = timedelta(seconds=60)
    edit: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """Record of a breaker that opened.

    Args:
        reconciles: Number of reconciles before it opened.
        seconds: Time in which they ran.
        source: The most frequent cause of the reconciles.
        share: Number of reconciles with that cause.
    """

    reconciles: int
    seconds: float
    source: str
    share: int


@dataclass(slots=True)
class _KeyBucket:
    tokens: float
    counted_at: float
    since: float
    reconciles: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    is_open: bool = False
    requested_at: float = 0.0
    edited_at: float = -inf


class Breaker(Generic[K]):
    """The buckets of all keys. A steady key has no bucket.

    Args:
        options: The limits; the defaults of `BreakerOptions` when not given.
    """

    def __init__(self, options: BreakerOptions | None = None) -> None:
        self._options = options or BreakerOptions()
        self._refill_seconds = self._options.refill.total_seconds()
        self._buckets: dict[K, _KeyBucket] = {}
        self._until_sweep = _SWEEP_EVERY

    def __len__(self) -> int:
        """Return the number of keys with a bucket: those that were reconciled recently."""
        return len(self._buckets)

    def record_start(self, key: K, now: float, source: str) -> BreakerOpened | None:
        """Record the start of a reconcile that the source requested; return a record if this opens the breaker."""
        bucket = self._get_bucket(key, now)
        bucket.tokens = max(0.0, bucket.tokens - 1.0)
        bucket.reconciles += 1
        if source in bucket.sources or len(bucket.sources) < _MAX_SOURCES:
            bucket.sources[source] += 1
        if bucket.is_open or bucket.tokens >= 1.0:
            return None
        bucket.is_open, bucket.requested_at = True, now
        source, share = bucket.sources.most_common(1)[0]
        return BreakerOpened(bucket.reconciles, now - bucket.since, source, share)

    def compute_delay(self, key: K, now: float, *, is_edit: bool = False) -> float:
        """Record a request for a reconcile of the key; return its minimum delay in seconds, 0 for a closed breaker.

        Args:
            key: The key.
            now: The present time in monotonic seconds.
            is_edit: Whether another client changed the desired state of the object.
        """
        bucket = self._buckets.get(key)
        if bucket is None or not bucket.is_open:
            return 0.0
        if now - bucket.requested_at >= self._options.calm.total_seconds():
            del self._buckets[key]
            return 0.0
        bucket.requested_at = now
        if is_edit and now - bucket.edited_at >= self._options.edit.total_seconds():
            bucket.edited_at = now
            return 0.0
        return self._options.probe.total_seconds()

    def forget(self, key: K) -> None:
        """Remove the bucket of the key."""
        self._buckets.pop(key, None)

    def _get_bucket(self, key: K, now: float) -> _KeyBucket:
        bucket = self._buckets.get(key)
        if bucket is not None:
            self._refill(bucket, now)
            if bucket.is_open or bucket.tokens < self._options.burst:
                return bucket
        else:
            self._sweep(now)
        bucket = self._buckets[key] = _KeyBucket(float(self._options.burst), now, now)
        return bucket

    def _refill(self, bucket: _KeyBucket, now: float) -> None:
        gained = (now - bucket.counted_at) / self._refill_seconds
        bucket.tokens = min(float(self._options.burst), bucket.tokens + gained)
        bucket.counted_at = now

    def _sweep(self, now: float) -> None:
        """Remove the buckets of steady keys; this runs only occasionally, so that its cost per key is negligible."""
        self._until_sweep -= 1
        if self._until_sweep:
            return
        self._until_sweep = max(_SWEEP_EVERY, len(self._buckets))
        full_after = max(self._options.burst * self._refill_seconds, self._options.calm.total_seconds())
        for key in [key for key, bucket in self._buckets.items() if now - bucket.counted_at >= full_after]:
            del self._buckets[key]
