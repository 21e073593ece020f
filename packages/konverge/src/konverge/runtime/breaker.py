"""The brake on loops of success: a key whose passes never come to rest is slowed down, and said so once. Pure.

A pass that fails waits for its back-off. One that succeeds and changes something wakes its own key again, and if it
changes something each time (or if two controllers undo each other's work) it would do so for ever, at full speed.

Each key has a bucket of passes that refills slowly. A pass takes one out; an empty bucket opens the breaker: the key
gets one pass now and then, until nothing has called for it for a while. A pass that nothing but the key's own
`Result.requeue_after` called for is free: its author chose the pace. Who edits the object meanwhile does not wait for
the loop: an edit passes at once, as long as edits are not a loop themselves.
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

# Sources are remembered to name the noisiest one: of a loop there are one or two.
_MAX_SOURCES = 16
_SWEEP_EVERY = 1024


@dataclass(frozen=True, slots=True)
class BreakerOptions:
    """When a key's passes are too many.

    Args:
        burst: So many passes may follow each other; bringing up the largest owner takes a fraction of that.
        refill: How often one more is allowed.
        probe: How often a key whose breaker is open gets a pass.
        calm: The breaker closes when nothing has called for the key for so long; more than `probe`, or each probe of
            a loop would close it.
        edit: How often a key whose breaker is open gets a pass at once because somebody else has edited its object.
    """

    burst: int = 100
    refill: timedelta = timedelta(seconds=1)
    probe: timedelta = timedelta(seconds=30)
    calm: timedelta = timedelta(seconds=60)
    edit: timedelta = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class BreakerOpened:
    """A breaker has opened.

    Args:
        passes: So many passes there were.
        seconds: Within so long.
        source: What called for most of them.
        share: How many of the passes that source called for.
    """

    passes: int
    seconds: float
    source: str
    share: int


@dataclass(slots=True)
class _KeyBucket:
    tokens: float
    counted_at: float
    since: float
    passes: int = 0
    sources: Counter[str] = field(default_factory=Counter)
    is_open: bool = False
    wanted_at: float = 0.0
    edited_at: float = -inf


class Breaker(Generic[K]):
    """The buckets of all keys; a key at rest has none.

    Args:
        options: When passes are too many.
    """

    def __init__(self, options: BreakerOptions | None = None) -> None:
        self._options = options or BreakerOptions()
        self._refill_seconds = self._options.refill.total_seconds()
        self._buckets: dict[K, _KeyBucket] = {}
        self._until_sweep = _SWEEP_EVERY

    def __len__(self) -> int:
        """How many keys have had passes of late."""
        return len(self._buckets)

    def record_start(self, key: K, now: float, source: str) -> BreakerOpened | None:
        """A pass of the key begins, called for by that source; tells if it opens the breaker."""
        bucket = self._get_bucket(key, now)
        bucket.tokens = max(0.0, bucket.tokens - 1.0)
        bucket.passes += 1
        if source in bucket.sources or len(bucket.sources) < _MAX_SOURCES:
            bucket.sources[source] += 1
        if bucket.is_open or bucket.tokens >= 1.0:
            return None
        bucket.is_open, bucket.wanted_at = True, now
        loudest, share = bucket.sources.most_common(1)[0]
        return BreakerOpened(bucket.passes, now - bucket.since, loudest, share)

    def compute_delay(self, key: K, now: float, *, is_edit: bool = False) -> float:
        """Something calls for the key: how long its pass must wait at least; 0 while its breaker is closed.

        Args:
            key: The key.
            now: Monotonic seconds.
            is_edit: Whether it is that somebody else wants something else of the object.
        """
        bucket = self._buckets.get(key)
        if bucket is None or not bucket.is_open:
            return 0.0
        if now - bucket.wanted_at >= self._options.calm.total_seconds():
            del self._buckets[key]
            return 0.0
        bucket.wanted_at = now
        if is_edit and now - bucket.edited_at >= self._options.edit.total_seconds():
            bucket.edited_at = now
            return 0.0
        return self._options.probe.total_seconds()

    def forget(self, key: K) -> None:
        """The key is gone."""
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
        """Forget the keys that have been at rest: now and then, so that it costs a key next to nothing."""
        self._until_sweep -= 1
        if self._until_sweep:
            return
        self._until_sweep = max(_SWEEP_EVERY, len(self._buckets))
        full_after = max(self._options.burst * self._refill_seconds, self._options.calm.total_seconds())
        for key in [key for key, bucket in self._buckets.items() if now - bucket.counted_at >= full_after]:
            del self._buckets[key]
