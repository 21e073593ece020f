"""The work queue of a controller, as a pure state machine: the keys to reconcile, their order and their earliest times.

A key waits (its time has not come, or it is due and no worker is free), runs, or runs with one more run requested. The
queue guarantees (invariant 3):

* A key runs at most once at a time. However often it is added while it runs, it runs exactly once more after that.
* Additions of one key merge: the earliest time and the highest priority of them hold.
* Due keys are ordered by priority, then by the turn of their group (`Queue`, ``group``), then by the order in which
  they became due. A flood of old objects at startup (low priority) therefore never delays a change that happens now,
  and a flood of one namespace delays another by one key at a time.
* A failed key waits for its own backoff. The backoff grows only if the key has waited for all of it: an earlier run
  that an addition caused, and that fails as well, leaves it unchanged. A success resets it, and so does a change from
  outside (`reset_backoff`). Keys never wait for each other.

Time is passed in, as seconds of one monotonic clock; nothing here waits.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

from konverge._internal.backoff import Backoff
from konverge.clock import Entropy

__all__ = ["DEFAULT_BACKOFF", "KeyEvent", "Queue"]

K = TypeVar("K", bound=Hashable)

# Superseded heap items stay in the heaps until they reach the top. The heaps are rebuilt when the number of such items
# exceeds the number of waiting keys by this factor, plus a free allowance.
_STALE_FACTOR = 4
_STALE_ALLOWANCE = 64

# A request that the cluster refused (a quota, a policy, a webhook, a missing permission) may be permitted at any time,
# and no event reports that. Such a key is retried at least this often, within this limit of retries per second.
_REFUSED_SECONDS = 30.0
_REFUSED_RATE = 20.0

# An endless stream of changes must not keep a backoff from growing: it is reset no more often than this. A backoff is
# therefore at most about twice as long as the time since the last reset.
_RESET_SECONDS = 10.0


DEFAULT_BACKOFF = Backoff(first_seconds=0.005, cap_seconds=500.0, jitter=1.0)
"""Delay of a failed key: 5 to 10 ms at first, doubling after each failure, up to 500 to 1000 s.

The limits are those of client-go's rate limiter. The jitter prevents keys that failed together from being retried
together.
"""


@dataclass(frozen=True, slots=True)
class KeyEvent:
    """One entry in the history of a key: time, event and detail."""

    time: float
    event: str
    detail: str = ""


@dataclass(slots=True, eq=False)
class _QueueItem:
    """State of a key that waits, runs, or has failed."""

    priority: int = 0
    not_before: float | None = None  # None: no run is requested (beyond the one that may be running)
    early_number: int | None = None  # number of its current item in the heap of early keys
    due_number: int | None = None  # number of its current item in the heap of due keys
    running: bool = False
    failures: int = 0
    backoffs: int = 0  # consecutive backoffs for which the key waited in full, including the present one
    retry_at: float = -inf  # end of the present backoff
    reset_at: float = -inf  # time of the last backoff reset
    is_refused: bool = False
    added_at: float = 0.0  # time of the first addition that no run has processed yet
    waited_seconds: float = 0.0  # seconds for which the running key had been due


class _Turns:
    """Turns of the groups at one priority (start-time fair queueing): each key takes the next turn of its group.

    A group without waiting keys begins at the present turn, so it neither saves turns nor waits for other groups.
    """

    def __init__(self) -> None:
        self.present = 0
        self.following: dict[Hashable, int] = {}

    def take_next(self, group: Hashable, max_groups: int) -> int:
        """Return the turn of a further key of the group; forget other groups that have no waiting keys."""
        turn = max(self.present, self.following.get(group, 0))
        if len(self.following) > max_groups:
            self.following = {other: number for other, number in self.following.items() if number > self.present}
        self.following[group] = turn + 1
        return turn


class Queue(Generic[K]):
    """Keys to reconcile.

    Args:
        entropy: Source of the jitter of backoffs.
        backoff: Delay of failed keys; `DEFAULT_BACKOFF` when not given.
        history_length: Number of events of all keys together that are kept for `history`.
        group: Return the group of a key, such as its namespace. Due keys of the same priority start in turns, one key
            of each group at a time; without groups, in the order in which they became due.
    """

    def __init__(
        self,
        entropy: Entropy,
        *,
        backoff: Backoff | None = None,
        history_length: int = 4096,
        group: Callable[[K], Hashable] | None = None,
    ) -> None:
        self._entropy = entropy
        self._backoff = backoff or DEFAULT_BACKOFF
        self._entries: dict[K, _QueueItem] = {}
        # Heaps of (not_before, number, key) of the early keys, and of (-priority, turn, number, key) of the due keys.
        self._early: list[tuple[float, int, K]] = []
        self._due: list[tuple[int, int, int, K]] = []
        self._group = group
        self._turns: dict[int, _Turns] = {}  # by priority
        self._last_number = 0
        self._running = 0
        self._waiting = 0
        self._refused = 0
        # Key, time, event and detail: `history` builds a `KeyEvent` from them on demand.
        self._history: deque[tuple[K, float, str, str]] = deque(maxlen=history_length)

    def __len__(self) -> int:
        """Return the number of waiting keys, due or not; a running key counts if it is to run again."""
        return self._waiting

    def __contains__(self, key: object) -> bool:
        """Return whether the key waits, runs, or has failed."""
        return key in self._entries

    @property
    def running(self) -> int:
        """The number of running keys."""
        return self._running

    def count_due(self) -> dict[int, int]:
        """Return the number of due keys that wait for a worker, by priority."""
        return dict(Counter(entry.priority for entry in self._entries.values() if entry.due_number is not None))

    def list_failing(self, limit: int) -> list[tuple[K, int, float | None]]:
        """Return keys that have failed, each with its consecutive failures and the earliest time of its next run.

        Args:
            limit: Maximum number of keys.

        Returns:
            The time is None for a running key.
        """
        failing = (
            (key, entry.failures, None if entry.running else entry.not_before)
            for key, entry in self._entries.items()
            if entry.failures
        )
        return list(itertools.islice(failing, limit))

    def add(self, key: K, now: float, *, priority: int = 0, not_before: float | None = None, reason: str = "") -> bool:
        """Request a run of the key.

        Args:
            key: The key to reconcile.
            now: The present time.
            priority: Priority among due keys; a higher one goes first.
            not_before: The earliest time of the run; the present when not given.
            reason: The cause, for the history of the key.

        Returns:
            Whether the key was not waiting before.
        """
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _QueueItem()
        is_new = entry.not_before is None
        if is_new:
            entry.added_at = now
        self._history.append((key, now, "added", reason))
        # A time in the past counts as the present: it must not move the key ahead of keys that waited.
        self._merge_request(key, entry, now, now if not_before is None or not_before < now else not_before, priority)
        return is_new

    def take(self, now: float) -> K | None:
        """Start and return the next due key; return None if no key is due."""
        self._promote(now)
        if not self._due:
            self._turns.clear()
            return None
        _, turn, _, key = heapq.heappop(self._due)
        entry = self._entries[key]
        if self._group is not None:
            turns = self._turns[entry.priority]
            turns.present = max(turns.present, turn)
        assert entry.not_before is not None
        entry.waited_seconds = now - entry.not_before
        entry.running, entry.not_before, entry.due_number = True, None, None
        self._running += 1
        self._waiting -= 1
        self._history.append((key, now, "started", ""))
        return key

    def get_queue_seconds(self, key: K) -> float:
        """Return the seconds for which the running key had been due before it started."""
        return self._entries[key].waited_seconds

    def compute_wait_seconds(self, now: float) -> float | None:
        """Return the seconds until `take` returns a key if nothing is added: 0 for now, None for never."""
        self._promote(now)
        if self._due:
            return 0.0
        return self._early[0][0] - now if self._early else None

    def get_addition_time(self, key: K) -> float:
        """Return the time of the first addition that the current run of the key processes."""
        return self._entries[key].added_at

    def mark_done(self, key: K, now: float) -> None:
        """End a successful run of the key; this resets its backoff."""
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
        """End a failed run of the key; the key runs again, with its priority, after its backoff.

        An addition during the run remains valid, so that a change does not wait for the backoff. A backoff that has not
        elapsed yet continues unchanged.

        Args:
            key: The key.
            now: The present time.
            reason: The cause, for the history of the key.
            is_refused: Whether the cluster refused a request; no event reports the end of a refusal. The key is retried
                at least every 30 s; with more than 600 such keys, they share 20 retries per second.

        Returns:
            The remaining seconds of the backoff.
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
        """Reset the backoff of the key, because an object that the key depends on changed.

        It is reset at most every 10 s, so that an endless stream of changes does not keep the backoff from growing.
        """
        entry = self._entries.get(key)
        if entry is not None and entry.backoffs and now - entry.reset_at >= _RESET_SECONDS:
            entry.backoffs, entry.retry_at, entry.reset_at = 0, -inf, now
            self._history.append((key, now, "backoff reset", ""))

    def count_failures(self, key: K) -> int:
        """Return the number of consecutive failures of the key."""
        entry = self._entries.get(key)
        return 0 if entry is None else entry.failures

    def history(self, key: K) -> tuple[KeyEvent, ...]:
        """Return the recent events of the key, oldest first, from a limited memory that all keys share."""
        return tuple(KeyEvent(time, event, detail) for entry, time, event, detail in self._history if entry == key)

    def _merge_request(self, key: K, entry: _QueueItem, now: float, moment: float, priority: int) -> None:
        """Merge a request for a run into the entry."""
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
            raise ValueError(f"{key}: expected a running key, found one that is not running")
        entry.running = False
        if entry.not_before is not None:
            entry.not_before = max(now, entry.not_before)  # a key that just ran goes behind the keys that waited
        self._running -= 1
        return entry

    def _schedule(self, key: K, entry: _QueueItem, now: float) -> None:
        """Push the key to the heap of early keys, or of due keys, where it keeps its number."""
        assert entry.not_before is not None
        if entry.due_number is not None:
            self._push_due(key, entry, entry.due_number)
        elif entry.not_before <= now:
            if self._early:
                self._promote(now)  # keys that became due earlier go first
            self._push_due(key, entry, self._next_number())
        else:
            entry.early_number = self._next_number()
            heapq.heappush(self._early, (entry.not_before, entry.early_number, key))
        if len(self._early) + len(self._due) > _STALE_ALLOWANCE + _STALE_FACTOR * self._waiting:
            self._early = [place for place in self._early if self._is_early(place)]
            self._due = [place for place in self._due if self._is_due(place)]
            heapq.heapify(self._early)
            heapq.heapify(self._due)

    def _promote(self, now: float) -> None:
        """Move early keys whose time has come to the due keys; remove superseded items from the top of both heaps."""
        while self._early:
            moment, _, key = self._early[0]
            if self._is_early(self._early[0]):
                if moment > now:
                    break
                entry = self._entries[key]
                self._push_due(key, entry, self._next_number())
            heapq.heappop(self._early)
        while self._due and not self._is_due(self._due[0]):
            heapq.heappop(self._due)

    def _is_early(self, place: tuple[float, int, K]) -> bool:
        entry = self._entries.get(place[2])
        return entry is not None and entry.early_number == place[1]

    def _push_due(self, key: K, entry: _QueueItem, number: int) -> None:
        """Push a key to the heap of due keys, with the next turn of its group."""
        turn = 0
        if self._group is not None:
            turns = self._turns.setdefault(entry.priority, _Turns())
            turn = turns.take_next(self._group(key), _STALE_ALLOWANCE + _STALE_FACTOR * self._waiting)
        entry.early_number, entry.due_number = None, number
        heapq.heappush(self._due, (-entry.priority, turn, number, key))

    def _is_due(self, place: tuple[int, int, int, K]) -> bool:
        entry = self._entries.get(place[3])
        return entry is not None and entry.due_number == place[2] and entry.priority == -place[0]

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number
