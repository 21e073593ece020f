"""The work queue of a controller, as a pure state machine: what is to be reconciled, in which order, not before when.

A key waits (its time has not come, or it is due and no worker is free), runs, or runs with one more run noted. From
that follow the promises (invariant 3):

* A key runs at most once at a time. However often it is added while it runs, it runs exactly once more after that.
* Additions of one key merge: the earliest time and the highest priority of them hold.
* Due keys go by priority, then by the order in which they came due; so a flood of old objects at start (low priority)
  never delays a change that happens now.
* A failed key waits for its own back-off. It grows once for each back-off that has elapsed: a run that an addition
  brought on earlier, and that fails as well, leaves it as it is. A success resets it, and so does a change from outside
  (`reset_backoff`). Keys never wait for each other.

Time is passed in, as seconds of one monotonic clock; nothing here waits.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from konverge.client.retries import Backoff
from konverge.clock import Entropy

__all__ = ["DEFAULT_BACKOFF", "KeyEvent", "Queue"]

K = TypeVar("K", bound=Hashable)

# Superseded places stay in the heaps until they surface; when they outnumber the waiting keys so often, they are
# swept out.
_STALE_FACTOR = 4
_STALE_FREE = 64

# What the cluster refused (a quota, a policy, a webhook, a missing permission) may be allowed at any time, and nothing
# tells of it: such a key is tried at least so often, as long as that makes no more than so many attempts a second.
_REFUSED_SECONDS = 30.0
_REFUSED_RATE = 20.0

# Changes that never end must not keep a back-off from growing: it is reset no more often than that. In the meantime a
# back-off is at most about twice as long as the time since the last reset.
_RESET_SECONDS = 10.0


DEFAULT_BACKOFF = Backoff(first_seconds=0.005, cap_seconds=500.0, jitter=1.0)
"""How long a failed key waits: 5 to 10 ms at first, each time twice as long as before, 500 to 1000 s at last.

The bounds are those that operators are used to from client-go's rate limiter; the jitter is there so that keys which
failed together do not come back together.
"""


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """One line of a key's story: when, what happened, and why."""

    time: float
    event: str
    detail: str = ""


@dataclass(slots=True, eq=False)
class _QueueItem:
    """A key that waits, runs, or has failures to its name."""

    priority: int = 0
    not_before: float | None = None  # None: no run is wanted (beyond the one that may be under way)
    early_number: int | None = None  # which of its places among the early ones counts
    due_number: int | None = None  # its place in the line of due ones
    running: bool = False
    failures: int = 0
    backoffs: int = 0  # how many times in a row the key has waited for its whole back-off, the present one included
    retry_at: float = -inf  # when the present back-off has elapsed
    reset_at: float = -inf  # when the back-off was reset last
    is_refused: bool = False
    added_at: float = 0.0  # when the first wish came that no run has answered yet
    waited_seconds: float = 0.0  # how long the run that is under way had been due


class Queue(Generic[K]):
    """Keys to be worked on.

    Args:
        entropy: Draws the jitter of back-offs.
        backoff: How long failed keys wait; `DEFAULT_BACKOFF` when not given.
        story_length: How many moments of all keys together are kept for `story`.
    """

    def __init__(self, entropy: Entropy, *, backoff: Backoff | None = None, story_length: int = 4096) -> None:
        self._entropy = entropy
        self._backoff = backoff or DEFAULT_BACKOFF
        self._entries: dict[K, _QueueItem] = {}
        # Heaps of (not_before, number, key) of the keys whose time has not come, (-priority, number, key) of the due.
        self._early: list[tuple[float, int, K]] = []
        self._due: list[tuple[int, int, K]] = []
        self._last_number = 0
        self._running = 0
        self._waiting = 0
        self._refused = 0
        # Key, time, event and detail: a `Moment` is made when somebody asks.
        self._history: deque[tuple[K, float, str, str]] = deque(maxlen=story_length)

    def __len__(self) -> int:
        """How many keys wait, due or not; a running one counts if it is to run again."""
        return self._waiting

    @property
    def running(self) -> int:
        """How many keys are being worked on."""
        return self._running

    def count_due(self) -> dict[int, int]:
        """How many keys are due and wait for a worker, by priority."""
        return dict(Counter(entry.priority for entry in self._entries.values() if entry.due_number is not None))

    def list_failing(self, limit: int) -> list[tuple[K, int, float | None]]:
        """Keys that have failed: each with its failures in a row, and not before when it runs again.

        Args:
            limit: So many at most.

        Returns:
            The time is None for a key that runs.
        """
        found = (
            (key, entry.failures, None if entry.running else entry.not_before)
            for key, entry in self._entries.items()
            if entry.failures
        )
        return list(itertools.islice(found, limit))

    def add(self, key: K, now: float, *, priority: int = 0, not_before: float | None = None, reason: str = "") -> bool:
        """Ask for a run of the key.

        Args:
            key: What to work on.
            now: The present time.
            priority: Higher goes first among the due ones.
            not_before: The earliest time of the run; the present when not given.
            reason: Why, for the key's story.

        Returns:
            Whether the key did not wait already.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _QueueItem()
        is_new = entry.not_before is None
        if is_new:
            entry.added_at = now
        self._history.append((key, now, "added", reason))
        # A time in the past is the present: nobody gets ahead in the line by claiming to have waited.
        self._merge_request(key, entry, now, now if not_before is None or not_before < now else not_before, priority)
        return is_new

    def take(self, now: float) -> K | None:
        """The next due key, which is running from now on; None when none is due."""
        self._promote(now)
        if not self._due:
            return None
        _, _, key = heapq.heappop(self._due)
        entry = self._entries[key]
        assert entry.not_before is not None
        entry.waited_seconds = now - entry.not_before
        entry.running, entry.not_before, entry.due_number = True, None, None
        self._running += 1
        self._waiting -= 1
        self._history.append((key, now, "started", ""))
        return key

    def get_queue_seconds(self, key: K) -> float:
        """How long the key that is being worked on had been due before."""
        return self._entries[key].waited_seconds

    def compute_wait_seconds(self, now: float) -> float | None:
        """How long until `take` gives a key if nothing is added: 0 for now, None for never."""
        self._promote(now)
        if self._due:
            return 0.0
        return self._early[0][0] - now if self._early else None

    def get_addition_time(self, key: K) -> float:
        """When the first addition came that the run of the key which is under way answers."""
        return self._entries[key].added_at

    def mark_done(self, key: K, now: float) -> None:
        """The run of the key succeeded: its back-off starts from the beginning again."""
        entry = self._finish(key, now)
        entry.failures = entry.backoffs = 0
        entry.retry_at = -inf
        self._mark_refused(entry, is_refused=False)
        self._history.append((key, now, "done", ""))
        if entry.not_before is None:
            del self._entries[key]
        else:
            self._schedule(key, entry, now)

    def mark_failed(self, key: K, now: float, *, reason: str = "", is_refused: bool = False) -> float:
        """The run of the key failed: it runs again, with its priority, after its back-off.

        If it was added while it ran, that addition holds as well: whatever changed is not made to wait. A back-off that
        has not elapsed yet goes on as it is.

        Args:
            key: The key.
            now: The present time.
            reason: Why, for the key's story.
            is_refused: The cluster refused something, and nothing will tell when it would not any more: the key is
                tried every 30 s at least, or, with more than 600 of such keys, as often as makes 20 attempts a second.

        Returns:
            How many seconds of the back-off are left.
        """
        entry = self._finish(key, now)
        entry.failures += 1
        self._mark_refused(entry, is_refused=is_refused)
        if now >= entry.retry_at:
            entry.backoffs += 1
            entry.retry_at = now + self._backoff.compute_delay(entry.backoffs, self._entropy)
        if is_refused:
            limit = max(_REFUSED_SECONDS, self._refused / _REFUSED_RATE) * self._entropy.uniform(0.5, 1.0)
            entry.retry_at = min(entry.retry_at, now + limit)
        self._history.append((key, now, "failed", reason))
        self._merge_request(key, entry, now, entry.retry_at, entry.priority)
        if entry.early_number is None and entry.due_number is None:
            self._schedule(key, entry, now)
        return entry.retry_at - now

    def reset_backoff(self, key: K, now: float) -> None:
        """Something that the key depends on has changed: the back-off after its next failure is the first one again.

        At most every 10 s, so that changes without end do not keep the back-off from growing.
        """
        entry = self._entries.get(key)
        if entry is not None and entry.backoffs and now - entry.reset_at >= _RESET_SECONDS:
            entry.backoffs, entry.retry_at, entry.reset_at = 0, -inf, now
            self._history.append((key, now, "back-off reset", ""))

    def count_failures(self, key: K) -> int:
        """How often in a row the key has failed."""
        entry = self._entries.get(key)
        return 0 if entry is None else entry.failures

    def history(self, key: K) -> tuple[KeyEvent, ...]:
        """What happened to the key of late, oldest first; from a bounded memory that all keys share."""
        return tuple(KeyEvent(time, event, detail) for told, time, event, detail in self._history if told == key)

    def _merge_request(self, key: K, entry: _QueueItem, now: float, moment: float, priority: int) -> None:
        """Merge a wish for a run into the entry."""
        if entry.not_before is None:
            entry.not_before, entry.priority = moment, priority
            self._waiting += 1
            moved = True
        else:
            moved = moment < entry.not_before if entry.due_number is None else priority > entry.priority
            entry.not_before = min(moment, entry.not_before)
            entry.priority = max(priority, entry.priority)
        if moved and not entry.running:
            self._schedule(key, entry, now)

    def _mark_refused(self, entry: _QueueItem, *, is_refused: bool) -> None:
        self._refused += is_refused - entry.is_refused
        entry.is_refused = is_refused

    def _finish(self, key: K, now: float) -> _QueueItem:
        entry = self._entries.get(key)
        if entry is None or not entry.running:
            raise ValueError(f"{key} is not running")
        entry.running = False
        if entry.not_before is not None:
            entry.not_before = max(now, entry.not_before)  # what ran just now lines up behind those that waited
        self._running -= 1
        return entry

    def _schedule(self, key: K, entry: _QueueItem, now: float) -> None:
        """Give the key its place: among the early, or by its new priority among the due where it already stands."""
        assert entry.not_before is not None
        if entry.due_number is not None:
            heapq.heappush(self._due, (-entry.priority, entry.due_number, key))
        elif entry.not_before <= now:
            if self._early:
                self._promote(now)  # those whose time came before stand in front of it
            entry.early_number, entry.due_number = None, self._next_number()
            heapq.heappush(self._due, (-entry.priority, entry.due_number, key))
        else:
            entry.early_number = self._next_number()
            heapq.heappush(self._early, (entry.not_before, entry.early_number, key))
        if len(self._early) + len(self._due) > _STALE_FREE + _STALE_FACTOR * self._waiting:
            self._early = [place for place in self._early if self._is_early(place)]
            self._due = [place for place in self._due if self._is_due(place)]
            heapq.heapify(self._early)
            heapq.heapify(self._due)

    def _promote(self, now: float) -> None:
        """Move the early keys whose time has come to the due ones, and leave no superseded place on top of either."""
        while self._early:
            moment, _, key = self._early[0]
            if self._is_early(self._early[0]):
                if moment > now:
                    break
                entry = self._entries[key]
                entry.early_number, entry.due_number = None, self._next_number()
                heapq.heappush(self._due, (-entry.priority, entry.due_number, key))
            heapq.heappop(self._early)
        while self._due and not self._is_due(self._due[0]):
            heapq.heappop(self._due)

    def _is_early(self, place: tuple[float, int, K]) -> bool:
        entry = self._entries.get(place[2])
        return entry is not None and entry.early_number == place[1]

    def _is_due(self, place: tuple[int, int, K]) -> bool:
        entry = self._entries.get(place[2])
        return entry is not None and entry.due_number == place[1] and entry.priority == -place[0]

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number
