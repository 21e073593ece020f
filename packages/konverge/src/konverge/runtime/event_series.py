"""Which requests a stream of recorded events is worth, as a pure state machine: events and a time in, requests out.

Occurrences that say the same about the same objects are one event with a series (a count and the last time), as
client-go's events.k8s.io broadcaster has it: the first occurrence creates the event, the second one writes the series,
later ones are only counted, and the count is written one refresh interval after the first of them. A series that has
been quiet for a while is finished: the next occurrence is a new event.

Three bounds keep a cluster and this process from a flood:

* each object that events are about has a token bucket (client-go's spam filter: 25 at once, then one in five minutes);
  an occurrence that would create an event and gets no token is dropped;
* all requests together have a token bucket; one that gets no token waits, and counts on while it waits;
* so many series are remembered at most; the one that was quiet for longest goes first.

Time is passed in: as seconds of one monotonic clock, and as the wall clock's where it is shown. Nothing here waits.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

__all__ = ["EventLimits", "EventRequest", "EventSeries", "EventStatistics", "EventTarget", "EventType", "Occurrence"]

EventType: TypeAlias = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class EventTarget:
    """An object that an event names (``ObjectReference``).

    The resource version does not tell two of them apart, and is in no name: a series goes on while its object changes.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened to an object. Equal ones form a series."""

    type: EventType
    reason: str
    action: str
    note: str
    regarding: EventTarget
    related: EventTarget | None = None


@dataclass(frozen=True, slots=True)
class EventRequest:
    """A request: create the event, or write its series.

    Args:
        occurrence: What happened.
        first_time: When for the first time.
        last_time: When for the last time.
        count: How often.
        creates: Whether the event has to be created; else it exists and its series is to be written.
    """

    occurrence: Occurrence
    first_time: datetime
    last_time: datetime
    count: int
    creates: bool


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How many events are sent and remembered.

    Args:
        object_burst: How many requests about one object at once.
        object_interval: After how long an object may have one more.
        burst: How many requests in all at once.
        requests_per_second: How many in all on end. The default leaves most of what the API server grants one client to
            the writes that events tell of.
        refresh: After how long the server learns of occurrences that were only counted.
        finish: After how long without an occurrence a series ends.
        series: How many series, and how many objects' buckets, are remembered.
    """

    object_burst: int = 25
    object_interval: timedelta = timedelta(minutes=5)
    burst: int = 100
    requests_per_second: float = 10.0
    refresh: timedelta = timedelta(minutes=6)
    finish: timedelta = timedelta(minutes=6)
    series: int = 2_000


@dataclass(slots=True)
class EventStatistics:
    """What became of the occurrences so far.

    Args:
        recorded: How many there were.
        counted: Those of them that were added to a series that was there.
        sent: Requests that succeeded.
        spared: Occurrences dropped since there were too many about one object.
        overflowed: Series forgotten before they were sent, since there were too many.
        refused: Requests that the server refused, or that could not be sent.
    """

    recorded: int = 0
    counted: int = 0
    sent: int = 0
    spared: int = 0
    overflowed: int = 0
    refused: int = 0

    @property
    def dropped(self) -> int:
        """How many never reached the server, whyever."""
        return self.spared + self.overflowed + self.refused


class _TokenBucket:
    """So many tokens at once, refilled at a steady rate."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Take a token if there is one."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def compute_wait_seconds(self, now: float) -> float:
        """How long until there is a token."""
        self._refill(now)
        return max(0.0, (1 - self._tokens) / self._per_second)

    def _refill(self, now: float) -> None:
        # A wait until exactly one token is there must find it there, whatever floats make of the sum.
        tokens = self._tokens + (now - self._at) * self._per_second + 1e-9
        self._tokens = min(self._burst, tokens)
        self._at = now


@dataclass(slots=True, eq=False)
class _SeriesState:
    first_time: datetime
    last_time: datetime
    quiet_since: float
    count: int = 1
    sent_count: int = 0  # 0: the server does not have the event; 1: it has no series yet


class EventSeries:
    """The events of one reporter.

    Args:
        now: The present time.
        limits: The bounds.
    """

    def __init__(self, now: float, limits: EventLimits | None = None) -> None:
        self.statistics = EventStatistics()
        self._limits = limits or EventLimits()
        self._overall = _TokenBucket(self._limits.burst, self._limits.requests_per_second, now)
        self._buckets: OrderedDict[EventTarget, _TokenBucket] = OrderedDict()
        # The one quiet for longest comes first.
        self._series: OrderedDict[Occurrence, _SeriesState] = OrderedDict()
        # What is to be sent as soon as the overall bucket allows.
        self._pending: OrderedDict[Occurrence, None] = OrderedDict()
        # Series that were counted on since they were written, with the time by which to write them: all wait equally
        # long, so the first is due first.
        self._refreshes: OrderedDict[Occurrence, float] = OrderedDict()

    @property
    def pending(self) -> int:
        """How many requests wait."""
        return len(self._pending)

    def record(self, occurrence: Occurrence, at: datetime, now: float) -> None:
        """Note that it happened.

        Args:
            occurrence: What.
            at: When, on the wall clock.
            now: The present time.
        """
        self.statistics.recorded += 1
        self._finish_quiet_series(now)
        series = self._series.get(occurrence)
        if series is None:
            self._begin(occurrence, at, now)
            return
        self.statistics.counted += 1
        series.count += 1
        series.last_time, series.quiet_since = at, now
        self._series.move_to_end(occurrence)
        if occurrence in self._pending or occurrence in self._refreshes:
            return
        if series.sent_count == 1 and self._may_send(occurrence, now):
            self._pending[occurrence] = None  # that it happens again is told at once, how often from time to time
        else:
            self._refreshes[occurrence] = now + self._limits.refresh.total_seconds()

    def take(self, now: float) -> EventRequest | None:
        """The next request, None when there is none now; it counts as sent until `lost` or `failed` says otherwise."""
        self._queue_due_refreshes(now)
        self._finish_quiet_series(now)
        if not self._pending or not self._overall.take(now):
            return None
        occurrence, _ = self._pending.popitem(last=False)
        series = self._series[occurrence]
        sending = EventRequest(occurrence, series.first_time, series.last_time, series.count, series.sent_count == 0)
        series.sent_count = series.count
        return sending

    def compute_wait_seconds(self, now: float) -> float | None:
        """How long until `take` may have something; None as long as nothing is recorded."""
        waits = []
        if self._pending:
            waits.append(self._overall.compute_wait_seconds(now))
        if self._refreshes:
            waits.append(next(iter(self._refreshes.values())) - now)
        if self._series:
            occurrence, quietest = next(iter(self._series.items()))
            if occurrence not in self._pending:
                waits.append(quietest.quiet_since + self._limits.finish.total_seconds() - now)
        return max(0.0, min(waits)) if waits else None

    def mark_sent(self) -> None:
        """The request that was taken last has reached the server."""
        self.statistics.sent += 1

    def mark_lost(self, sending: EventRequest) -> None:
        """The server does not have the event of that series any more (events are short-lived): create it again."""
        series = self._series.get(sending.occurrence)
        if series is not None:
            series.sent_count = 0
            self._pending[sending.occurrence] = None

    def requeue(self, sending: EventRequest) -> None:
        """Nothing came of the request; it goes first when the next one is taken."""
        series = self._series.get(sending.occurrence)
        if series is None:  # forgotten meanwhile
            self.statistics.refused += 1
            return
        if sending.creates:
            series.sent_count = 0
        self._pending[sending.occurrence] = None
        self._pending.move_to_end(sending.occurrence, last=False)

    def mark_refused(self, sending: EventRequest) -> None:
        """The server does not want the request; it is not made again. A later occurrence is a new event."""
        self.statistics.refused += 1
        self._forget(sending.occurrence)

    def finish(self) -> None:
        """Nothing more will be recorded: what was only counted since it was sent is to be sent now."""
        for occurrence in self._refreshes:
            self._pending[occurrence] = None
        self._refreshes.clear()

    def _begin(self, occurrence: Occurrence, at: datetime, now: float) -> None:
        if not self._may_send(occurrence, now):
            self.statistics.spared += 1
            return
        self._series[occurrence] = _SeriesState(at, at, now)
        self._pending[occurrence] = None
        if len(self._series) > self._limits.series:
            quietest, _ = next(iter(self._series.items()))
            if quietest in self._pending or quietest in self._refreshes:
                self.statistics.overflowed += 1
            self._forget(quietest)

    def _may_send(self, occurrence: Occurrence, now: float) -> bool:
        """Take a token of the object's bucket."""
        about = occurrence.regarding
        bucket = self._buckets.pop(about, None)
        if bucket is None:
            limits = self._limits
            bucket = _TokenBucket(limits.object_burst, 1 / limits.object_interval.total_seconds(), now)
        self._buckets[about] = bucket
        if len(self._buckets) > self._limits.series:
            self._buckets.popitem(last=False)
        return bucket.take(now)

    def _queue_due_refreshes(self, now: float) -> None:
        while self._refreshes:
            occurrence, due = next(iter(self._refreshes.items()))
            if due > now:
                return
            del self._refreshes[occurrence]
            # One request in an interval is bounded by itself: it needs no token of its object's.
            self._pending[occurrence] = None

    def _finish_quiet_series(self, now: float) -> None:
        finish_seconds = self._limits.finish.total_seconds()
        while self._series:
            occurrence, series = next(iter(self._series.items()))
            if occurrence in self._pending or series.quiet_since + finish_seconds > now:
                return
            if occurrence in self._refreshes:
                # The last count is still to be written; then it ends.
                del self._refreshes[occurrence]
                self._pending[occurrence] = None
                return
            self._forget(occurrence)

    def _forget(self, occurrence: Occurrence) -> None:
        self._series.pop(occurrence, None)
        self._pending.pop(occurrence, None)
        self._refreshes.pop(occurrence, None)
