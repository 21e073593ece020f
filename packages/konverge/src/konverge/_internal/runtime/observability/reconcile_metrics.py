"""Metrics of controllers and clients: reconciles, their requests and writes.

The requests of a reconcile are counted without the help of its code: the client sends them in the task of the
reconcile, whose context identifies it (`runtime.reconciliation.current_reconciliation`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime

from konverge._internal.kube import ObjectKey
from konverge._internal.runtime.controller_observer import ReconcileOutcome
from konverge._internal.runtime.observability import metric_families
from konverge._internal.runtime.observability.metric_series import (
    FamilySample,
    HistogramValue,
    MetricSeries,
    NumberValue,
    build_histogram_series,
    build_number_series,
)
from konverge._internal.runtime.reconciliation import current_reconciliation
from konverge.clock import Clock

__all__ = ["BreakerOpening", "ControllerMetrics", "ReconcileMetrics", "RequestMetrics"]

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_RESULTS = {
    ReconcileOutcome.SUCCESS: "success",
    ReconcileOutcome.REQUEUE_AFTER: "requeue_after",
    ReconcileOutcome.ERROR: "error",
    ReconcileOutcome.TERMINAL: "error",
    ReconcileOutcome.TIMEOUT: "error",
    ReconcileOutcome.ABANDONED: "requeue",  # no failure: a replica reconciles it again
}
# A cancelled reconcile does not report its end; the oldest of this many is certainly one of those.
_MAX_RECONCILES = 10_000
_MAX_OPENINGS = 100


@dataclass(frozen=True, slots=True)
class BreakerOpening:
    """A breaker that slowed down an object's reconciles because they never became steady."""

    time: datetime
    controller: str
    key: ObjectKey
    source: str


@dataclass(slots=True)
class _RequestCost:
    requests: int = 0
    writes: int = 0


class ReconcileMetrics:
    """All families about reconciles and requests.

    Args:
        clock: Source of the times of breaker openings.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.total: MetricSeries[NumberValue] = build_number_series(metric_families.RECONCILE_TOTAL)
        self.errors: MetricSeries[NumberValue] = build_number_series(metric_families.RECONCILE_ERRORS)
        self.terminal_errors: MetricSeries[NumberValue] = build_number_series(metric_families.TERMINAL_ERRORS)
        self.panics: MetricSeries[NumberValue] = build_number_series(metric_families.RECONCILE_PANICS)
        self.timeouts: MetricSeries[NumberValue] = build_number_series(metric_families.RECONCILE_TIMEOUTS)
        self.seconds: MetricSeries[HistogramValue] = build_histogram_series(metric_families.RECONCILE_SECONDS)
        self.adds: MetricSeries[NumberValue] = build_number_series(metric_families.ADDS)
        self.queue_seconds: MetricSeries[HistogramValue] = build_histogram_series(metric_families.QUEUE_SECONDS)
        self.work_seconds: MetricSeries[HistogramValue] = build_histogram_series(metric_families.WORK_SECONDS)
        self.retries: MetricSeries[NumberValue] = build_number_series(metric_families.RETRIES)
        self.event_seconds: MetricSeries[HistogramValue] = build_histogram_series(metric_families.EVENT_TO_RECONCILE)
        self.reconcile_requests: MetricSeries[HistogramValue] = build_histogram_series(
            metric_families.RECONCILE_REQUESTS
        )
        self.reconcile_writes: MetricSeries[HistogramValue] = build_histogram_series(metric_families.RECONCILE_WRITES)
        self.noops: MetricSeries[NumberValue] = build_number_series(metric_families.RECONCILE_NOOPS)
        self.breakers: MetricSeries[NumberValue] = build_number_series(metric_families.BREAKER)
        self.requests: MetricSeries[NumberValue] = build_number_series(metric_families.REQUESTS)
        self.request_seconds: MetricSeries[HistogramValue] = build_histogram_series(metric_families.REQUEST_SECONDS)
        self.request_bytes: MetricSeries[HistogramValue] = build_histogram_series(metric_families.REQUEST_BYTES)
        self.response_bytes: MetricSeries[HistogramValue] = build_histogram_series(metric_families.RESPONSE_BYTES)
        self.request_retries: MetricSeries[NumberValue] = build_number_series(metric_families.REQUEST_RETRIES)
        self.openings: deque[BreakerOpening] = deque(maxlen=_MAX_OPENINGS)
        self._costs: dict[str, _RequestCost] = {}

    def count_request(self, *, is_write: bool) -> None:
        """Count a request for the current reconcile, if any."""
        current = current_reconciliation.get()
        if current is None:
            return
        cost = self._costs.get(current.reconcile_id)
        if cost is None:
            if len(self._costs) >= _MAX_RECONCILES:
                del self._costs[next(iter(self._costs))]
            cost = self._costs[current.reconcile_id] = _RequestCost()
        cost.requests += 1
        cost.writes += is_write

    def take_cost(self) -> tuple[int, int] | None:
        """Return the requests of the ending reconcile and the number of writes among them; None outside of any."""
        current = current_reconciliation.get()
        if current is None:
            return None
        cost = self._costs.pop(current.reconcile_id, None)
        return (0, 0) if cost is None else (cost.requests, cost.writes)

    def read(self) -> list[FamilySample]:
        """Return the present samples of all families."""
        return [
            *(series.read() for series in (self.total, self.errors, self.terminal_errors, self.panics, self.timeouts)),
            *(series.read() for series in (self.seconds, self.queue_seconds, self.work_seconds, self.event_seconds)),
            *(series.read() for series in (self.adds, self.retries, self.noops, self.breakers)),
            *(series.read() for series in (self.reconcile_requests, self.reconcile_writes)),
            *(series.read() for series in (self.requests, self.request_retries)),
            *(series.read() for series in (self.request_seconds, self.request_bytes, self.response_bytes)),
        ]


class ControllerMetrics:
    """Metrics of one controller: a `runtime.controller_observer.ControllerObserver`.

    Every series exists from the start, so that an alert on a rate sees the first failure as a change from 0.

    Args:
        name: The controller's name.
        metrics: The families to count in.
    """

    def __init__(self, name: str, metrics: ReconcileMetrics) -> None:
        self._name = name
        self._metrics = metrics
        for result in ("success", "error", "requeue", "requeue_after"):
            metrics.total.get_child(name, result)
        metrics.panics.get_child(name)
        self._results = {outcome: metrics.total.get_child(name, result) for outcome, result in _RESULTS.items()}
        self._errors = metrics.errors.get_child(name)
        self._terminal_errors = metrics.terminal_errors.get_child(name)
        self._timeouts = metrics.timeouts.get_child(name)
        self._seconds = metrics.seconds.get_child(name)
        self._adds = metrics.adds.get_child(name, name)
        self._queue_seconds = metrics.queue_seconds.get_child(name, name)
        self._work_seconds = metrics.work_seconds.get_child(name, name)
        self._retries = metrics.retries.get_child(name, name)
        self._event_seconds = metrics.event_seconds.get_child(name)
        self._requests = metrics.reconcile_requests.get_child(name)
        self._writes = metrics.reconcile_writes.get_child(name)
        self._noops = metrics.noops.get_child(name)
        self._breaker = metrics.breakers.get_child(name)

    def on_add(self, *, priority: int) -> None:
        """Count a key that entered the queue."""
        self._adds.value += 1

    def on_retry(self) -> None:
        """Count a key that was requeued after a failure."""
        self._retries.value += 1

    def on_start(self, *, waited_seconds: float) -> None:
        """Record the time that the key of a starting reconcile had been due."""
        self._queue_seconds.observe(waited_seconds)

    def on_event_latency(self, *, seconds: float) -> None:
        """Record the age of the change that triggered the starting reconcile, the first one of several."""
        self._event_seconds.observe(seconds)

    def on_finish(self, outcome: ReconcileOutcome, *, seconds: float) -> None:
        """Record the end of a reconcile with its duration; call it in the task of the reconcile."""
        self._results[outcome].value += 1
        self._seconds.observe(seconds)
        self._work_seconds.observe(seconds)
        if outcome is ReconcileOutcome.REQUEUE_AFTER:
            self._retries.value += 1  # client-go counts every key that is requeued for later
        elif outcome not in (ReconcileOutcome.SUCCESS, ReconcileOutcome.ABANDONED):
            self._errors.value += 1
            if outcome is ReconcileOutcome.TERMINAL:
                self._terminal_errors.value += 1
            elif outcome is ReconcileOutcome.TIMEOUT:
                self._timeouts.value += 1
        cost = self._metrics.take_cost()
        if cost is not None:
            self._requests.observe(cost[0])
            self._writes.observe(cost[1])
            self._noops.value += not cost[1]

    def on_breaker_open(self, key: ObjectKey, source: str) -> None:
        """Record that the breaker slows down a key."""
        # Neither is a label: both have as many values as there are objects.
        self._breaker.value += 1
        self._metrics.openings.append(BreakerOpening(self._metrics.clock.now(), self._name, key, source))


class RequestMetrics:
    """Metrics of the requests to one API server: a `client.request_observer.RequestObserver`.

    The path is not a label: it has as many values as there are objects.

    Args:
        host: The server's host and port.
        metrics: The families to count in.
    """

    def __init__(self, host: str, metrics: ReconcileMetrics) -> None:
        self._host = host
        self._metrics = metrics

    def on_request(
        self, method: str, path: str, *, code: str, seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """Record an attempt that has ended."""
        metrics, host = self._metrics, self._host
        metrics.requests.get_child(code, method, host).value += 1
        metrics.request_seconds.get_child(method, host).observe(seconds)
        metrics.request_bytes.get_child(method, host).observe(sent_bytes)
        metrics.response_bytes.get_child(method, host).observe(received_bytes)
        metrics.count_request(is_write=method not in _READS)

    def on_retry(self, method: str, *, code: str) -> None:
        """Count the retry of an attempt that ended with the code."""
        self._metrics.request_retries.get_child(code, method, self._host).value += 1
