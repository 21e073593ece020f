"""What controllers and clients tell, counted: passes, their requests, what they changed.

How many requests a pass sends is known without anybody's help: the client sends in the task of the pass, which says
which pass that is (`konverge.runtime.passes.current_pass`).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime

from konverge.clock import Clock
from konverge.kube import ObjectKey
from konverge.runtime.observing import Outcome
from konverge.runtime.passes import current_pass
from konverge.runtime.serving import families
from konverge.runtime.serving.series import FamilySample, distributions, numbers

__all__ = ["BreakerOpening", "ControllerMetrics", "PassMetrics", "RequestMetrics"]

_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_RESULTS = {
    Outcome.SUCCESS: "success",
    Outcome.REQUEUE_AFTER: "requeue_after",
    Outcome.ERROR: "error",
    Outcome.TERMINAL: "error",
    Outcome.TIMEOUT: "error",
    Outcome.ABANDONED: "requeue",  # no failure: it is done again, by whoever may
}
# A pass that was cancelled ends without a word; the oldest of so many is surely one of those.
_MAX_PASSES = 10_000
_MAX_OPENINGS = 100


@dataclass(frozen=True, slots=True)
class BreakerOpening:
    """An object's reconciles were slowed down because they never came to rest."""

    time: datetime
    controller: str
    key: ObjectKey
    source: str


@dataclass(slots=True)
class _Cost:
    requests: int = 0
    writes: int = 0


class PassMetrics:
    """All families about passes and requests.

    Args:
        clock: Dates what the breakers say.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.total = numbers(families.RECONCILE_TOTAL)
        self.errors = numbers(families.RECONCILE_ERRORS)
        self.terminal_errors = numbers(families.TERMINAL_ERRORS)
        self.panics = numbers(families.RECONCILE_PANICS)
        self.timeouts = numbers(families.RECONCILE_TIMEOUTS)
        self.seconds = distributions(families.RECONCILE_SECONDS)
        self.adds = numbers(families.ADDS)
        self.queue_seconds = distributions(families.QUEUE_SECONDS)
        self.work_seconds = distributions(families.WORK_SECONDS)
        self.retries = numbers(families.RETRIES)
        self.event_seconds = distributions(families.EVENT_TO_RECONCILE)
        self.pass_requests = distributions(families.RECONCILE_REQUESTS)
        self.pass_writes = distributions(families.RECONCILE_WRITES)
        self.noops = numbers(families.RECONCILE_NOOPS)
        self.breakers = numbers(families.BREAKER)
        self.requests = numbers(families.REQUESTS)
        self.request_seconds = distributions(families.REQUEST_SECONDS)
        self.request_bytes = distributions(families.REQUEST_BYTES)
        self.response_bytes = distributions(families.RESPONSE_BYTES)
        self.request_retries = numbers(families.REQUEST_RETRIES)
        self.openings: deque[BreakerOpening] = deque(maxlen=_MAX_OPENINGS)
        self._costs: dict[str, _Cost] = {}

    def spend(self, *, is_write: bool) -> None:
        """A request was sent; it belongs to the pass that runs, if any."""
        running = current_pass.get()
        if running is None:
            return
        cost = self._costs.get(running.reconcile_id)
        if cost is None:
            if len(self._costs) >= _MAX_PASSES:
                del self._costs[next(iter(self._costs))]
            cost = self._costs[running.reconcile_id] = _Cost()
        cost.requests += 1
        cost.writes += is_write

    def settle(self) -> tuple[int, int] | None:
        """The requests of the pass that ends, and how many of them were writes; None outside of any."""
        running = current_pass.get()
        if running is None:
            return None
        cost = self._costs.pop(running.reconcile_id, None)
        return (0, 0) if cost is None else (cost.requests, cost.writes)

    def read(self) -> list[FamilySample]:
        """All of them now."""
        return [
            *(each.read() for each in (self.total, self.errors, self.terminal_errors, self.panics, self.timeouts)),
            *(each.read() for each in (self.seconds, self.queue_seconds, self.work_seconds, self.event_seconds)),
            *(each.read() for each in (self.adds, self.retries, self.noops, self.breakers)),
            *(each.read() for each in (self.pass_requests, self.pass_writes)),
            *(each.read() for each in (self.requests, self.request_retries)),
            *(each.read() for each in (self.request_seconds, self.request_bytes, self.response_bytes)),
        ]


class ControllerMetrics:
    """What one controller does: a `konverge.runtime.observing.ControllerObserver`.

    Every series exists from the start, so that an alert on a rate sees the first failure as a change from 0.

    Args:
        name: The controller's name.
        metrics: Where it is counted.
    """

    def __init__(self, name: str, metrics: PassMetrics) -> None:
        self._name = name
        self._metrics = metrics
        for result in ("success", "error", "requeue", "requeue_after"):
            metrics.total.of(name, result)
        metrics.panics.of(name)
        self._results = {outcome: metrics.total.of(name, result) for outcome, result in _RESULTS.items()}
        self._errors = metrics.errors.of(name)
        self._terminal_errors = metrics.terminal_errors.of(name)
        self._timeouts = metrics.timeouts.of(name)
        self._seconds = metrics.seconds.of(name)
        self._adds = metrics.adds.of(name, name)
        self._queue_seconds = metrics.queue_seconds.of(name, name)
        self._work_seconds = metrics.work_seconds.of(name, name)
        self._retries = metrics.retries.of(name, name)
        self._event_seconds = metrics.event_seconds.of(name)
        self._requests = metrics.pass_requests.of(name)
        self._writes = metrics.pass_writes.of(name)
        self._noops = metrics.noops.of(name)
        self._breaker = metrics.breakers.of(name)

    def added(self, *, priority: int) -> None:
        """A key that did not wait before has been put into the queue."""
        self._adds.value += 1

    def retried(self) -> None:
        """A key has been put back after a failure."""
        self._retries.value += 1

    def started(self, *, waited_seconds: float) -> None:
        """A pass starts; its key had been due for so long."""
        self._queue_seconds.observe(waited_seconds)

    def answered(self, *, seconds: float) -> None:
        """The pass that starts answers a change whose event arrived so long ago, the first if there were several."""
        self._event_seconds.observe(seconds)

    def finished(self, outcome: Outcome, *, seconds: float) -> None:
        """A pass has ended after so long; told in the task of the pass."""
        self._results[outcome].value += 1
        self._seconds.observe(seconds)
        self._work_seconds.observe(seconds)
        if outcome is Outcome.REQUEUE_AFTER:
            self._retries.value += 1  # client-go counts whatever is put back for later
        elif outcome not in (Outcome.SUCCESS, Outcome.ABANDONED):
            self._errors.value += 1
            if outcome is Outcome.TERMINAL:
                self._terminal_errors.value += 1
            elif outcome is Outcome.TIMEOUT:
                self._timeouts.value += 1
        cost = self._metrics.settle()
        if cost is not None:
            self._requests.observe(cost[0])
            self._writes.observe(cost[1])
            self._noops.value += not cost[1]

    def breaker_opened(self, key: ObjectKey, source: str) -> None:
        """The key's passes come too fast for no good and are slowed down."""
        # Neither is a label: there are as many as objects.
        self._breaker.value += 1
        self._metrics.openings.append(BreakerOpening(self._metrics.clock.now(), self._name, key, source))


class RequestMetrics:
    """The requests to one API server: a `konverge.client.observing.RequestObserver`.

    The path is no label: it has as many values as there are objects.

    Args:
        host: The server's host and port.
        metrics: Where they are counted.
    """

    def __init__(self, host: str, metrics: PassMetrics) -> None:
        self._host = host
        self._metrics = metrics

    def requested(
        self, method: str, path: str, *, code: str, seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """An attempt has ended."""
        metrics, host = self._metrics, self._host
        metrics.requests.of(code, method, host).value += 1
        metrics.request_seconds.of(method, host).observe(seconds)
        metrics.request_bytes.of(method, host).observe(sent_bytes)
        metrics.response_bytes.of(method, host).observe(received_bytes)
        metrics.spend(is_write=method not in _READS)

    def retried(self, method: str, *, code: str) -> None:
        """The attempt that ended so is about to be repeated."""
        self._metrics.request_retries.of(code, method, self._host).value += 1
