"""The requests that a stream of recorded events requires, as a pure state machine: events and a time in, requests out.

Equal occurrences about the same objects form one event with a series (a count and the last time), as in client-go's
events.k8s.io broadcaster. The first occurrence creates the event, and the second one writes the series. Later ones are
only counted; the count is written one refresh interval after the first of them. A series without occurrences for a
while is finished: the next occurrence is a new event.

Three limits protect the cluster and this process from a flood:

* Each object has a token bucket (client-go's spam filter: 25 at once, then one in five minutes). An occurrence that
  would create an event and gets no token is dropped.
* All requests together have a token bucket. A request that gets no token waits, and its count grows while it waits.
* The number of series in memory is limited; the one that was quiet for longest is removed first.

Time is passed in: as seconds of one monotonic clock, and as wall clock time where it is shown. Nothing here waits.
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
    """An object that an event refers to (``ObjectReference``).

    The resource version is not part of its identity, nor of any name: a series continues while its object changes.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An incident of one object. Equal ones form a series."""

    type: EventType
    reason: str
    action: str
    note: str
    regarding: EventTarget
    related: EventTarget | None = None


@dataclass(frozen=True, slots=True)
class EventRequest:
    """A request that creates the event or writes its series.

    Args:
        occurrence: The reported incident.
        first_time: Time of its first occurrence.
        last_time: Time of its last occurrence.
        count: Number of occurrences.
        creates: Whether the request creates the event; otherwise it writes the series of an existing event.
    """

    occurrence: Occurrence
    first_time: datetime
    last_time: datetime
    count: int
    creates: bool


@dataclass(frozen=True, slots=True)
class EventLimits:
    """Limits on the events that are sent and kept in memory.

    Args:
        object_burst: Number of requests about one object in quick succession.
        object_interval: Interval after which an object may have one more request.
        burst: Number of all requests in quick succession.
        requests_per_second: Sustained rate of all requests. The default leaves most of the share that the API server
            grants one client to the writes that the events report.
        refresh: Time until the server receives the count of occurrences that were only counted.
        finish: Time without an occurrence after which a series ends.
        series: Number of series, and of per-object buckets, in memory.
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
    """Counters of occurrences and requests.

    Args:
        recorded: Number of occurrences.
        counted: Number of occurrences that were added to an existing series.
        sent: Number of requests that succeeded.
        spared: Number of occurrences that were dropped by the limit per object.
        overflowed: Number of series that were removed before they were sent, by the limit on series.
        refused: Number of requests that the server refused, or that could not be sent.
    """

    recorded: int = 0
    counted: int = 0
    sent: int = 0
    spared: int = 0
    overflowed: int = 0
    refused: int = 0

    @property
    def dropped(self) -> int:
        """The number of events that never reached the server, for any reason."""
        return self.spared + self.overflowed + self.refused


class _TokenBucket:
    """Token bucket with a burst and a steady refill rate."""

    __slots__ = ("_at", "_burst", "_per_second", "_tokens")

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._tokens = burst
        self._at = now

    def take(self, now: float) -> bool:
        """Take a token; return False if there is none."""
        self._refill(now)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def compute_wait_seconds(self, now: float) -> float:
        """Return the seconds until a token is available."""
        self._refill(now)
        return max(0.0, (1 - self._tokens) / self._per_second)

    def _refill(self, now: float) -> None:
        # A wait until exactly one token is available must find it, despite the rounding of floats.
        tokens = self._tokens + (now - self._at) * self._per_second + 1e-9
        self._tokens = min(self._burst, tokens)
        self._at = now


@dataclass(slots=True, eq=False)
class _SeriesState:
    first_time: datetime
    last_time: datetime
    quiet_since: float
    count: int = 1
    sent_count: int = 0  # 0: the event does not exist on the server; 1: it has no series yet


class EventSeries:
    """The event series of one reporter.

    Args:
        now: The present time.
        limits: The limits; the defaults of `EventLimits` when not given.
    """

    def __init__(self, now: float, limits: EventLimits | None = None) -> None:
        self.statistics = EventStatistics()
        self._limits = limits or EventLimits()
        self._overall = _TokenBucket(self._limits.burst, self._limits.requests_per_second, now)
        self._buckets: OrderedDict[EventTarget, _TokenBucket] = OrderedDict()
        # Ordered by the last occurrence: the series that was quiet for longest comes first.
        self._series: OrderedDict[Occurrence, _SeriesState] = OrderedDict()
        # Requests to send as soon as the overall bucket allows it.
        self._pending: OrderedDict[Occurrence, None] = OrderedDict()
        # Series whose count grew since they were written, with the time of their next write. All wait equally long, so
        # the first is due first.
        self._refreshes: OrderedDict[Occurrence, float] = OrderedDict()

    @property
    def pending(self) -> int:
        """The number of waiting requests."""
        return len(self._pending)

    def record(self, occurrence: Occurrence, at: datetime, now: float) -> None:
        """Record an occurrence.

        Args:
            occurrence: The incident.
            at: Its time on the wall clock.
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
            self._pending[occurrence] = None  # the first repetition is sent at once, later counts periodically
        else:
            self._refreshes[occurrence] = now + self._limits.refresh.total_seconds()

    def take(self, now: float) -> EventRequest | None:
        """Return the next request, None if none is due; it counts as sent unless marked as lost or refused."""
        self._queue_due_refreshes(now)
        self._finish_quiet_series(now)
        if not self._pending or not self._overall.take(now):
            return None
        occurrence, _ = self._pending.popitem(last=False)
        series = self._series[occurrence]
        request = EventRequest(occurrence, series.first_time, series.last_time, series.count, series.sent_count == 0)
        series.sent_count = series.count
        return request

    def compute_wait_seconds(self, now: float) -> float | None:
        """Return the seconds until `take` may return a request; None while no event is recorded."""
        waits = []
        if self._pending:
            waits.append(self._overall.compute_wait_seconds(now))
        if self._refreshes:
            waits.append(next(iter(self._refreshes.values())) - now)
        if self._series:
            occurrence, oldest = next(iter(self._series.items()))
            if occurrence not in self._pending:
                waits.append(oldest.quiet_since + self._limits.finish.total_seconds() - now)
        return max(0.0, min(waits)) if waits else None

    def mark_sent(self) -> None:
        """Record that the latest request reached the server."""
        self.statistics.sent += 1

    def mark_lost(self, request: EventRequest) -> None:
        """Create the event of the series again: it expired on the server (events are short-lived)."""
        series = self._series.get(request.occurrence)
        if series is not None:
            series.sent_count = 0
            self._pending[request.occurrence] = None

    def requeue(self, request: EventRequest) -> None:
        """Put back a request that was not delivered; the next `take` returns it first."""
        series = self._series.get(request.occurrence)
        if series is None:  # removed meanwhile
            self.statistics.refused += 1
            return
        if request.creates:
            series.sent_count = 0
        self._pending[request.occurrence] = None
        self._pending.move_to_end(request.occurrence, last=False)

    def mark_refused(self, request: EventRequest) -> None:
        """Drop a request that the server refused. A later occurrence is a new event."""
        self.statistics.refused += 1
        self._forget(request.occurrence)

    def finish(self) -> None:
        """Queue all counts that are not written yet: no further event will be recorded."""
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
            oldest, _ = next(iter(self._series.items()))
            if oldest in self._pending or oldest in self._refreshes:
                self.statistics.overflowed += 1
            self._forget(oldest)

    def _may_send(self, occurrence: Occurrence, now: float) -> bool:
        """Take a token from the object's bucket."""
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
            # One request per interval is limited by itself: it takes no token of its object.
            self._pending[occurrence] = None

    def _finish_quiet_series(self, now: float) -> None:
        finish_seconds = self._limits.finish.total_seconds()
        while self._series:
            occurrence, series = next(iter(self._series.items()))
            if occurrence in self._pending or series.quiet_since + finish_seconds > now:
                return
            if occurrence in self._refreshes:
                # The last count is still unwritten; the series ends after its write.
                del self._refreshes[occurrence]
                self._pending[occurrence] = None
                return
            self._forget(occurrence)

    def _forget(self, occurrence: Occurrence) -> None:
        self._series.pop(occurrence, None)
        self._pending.pop(occurrence, None)
        self._refreshes.pop(occurrence, None)
