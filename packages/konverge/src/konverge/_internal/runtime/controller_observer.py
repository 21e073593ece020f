"""The ports through which a controller reports: metrics and tracing implement them. No method may wait or raise.

Values that can be read at any time (depth, active workers, longest run) are not reported here. An exporter reads them
from `Controller` and `Queue`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from konverge._internal.kube import ObjectKey

__all__ = ["ControllerObserver", "ReconcileOutcome", "ReconcileTracer"]


class ReconcileOutcome(Enum):
    """Outcome of one reconcile, as in its metrics."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    TIMEOUT = "timeout"
    ABANDONED = "abandoned"  # ended because the replica lost the assignment of the key


class FailureReporter(Protocol):
    """Port for reports on objects whose reconciles fail. Implementations must neither wait nor raise."""

    def report_failure(self, key: ObjectKey, error: BaseException, times: int) -> bool:
        """Report the latest of `times` consecutive failures; return whether it was reported."""

    def report_recovery(self, key: ObjectKey) -> None:
        """Report a success that follows a reported failure."""


class ControllerObserver(Protocol):
    """Port for the metrics of one controller."""

    def on_add(self, *, priority: int) -> None:
        """Record that a key which was not waiting entered the queue."""

    def on_retry(self) -> None:
        """Record that a key was requeued after a failure."""

    def on_start(self, *, waited_seconds: float) -> None:
        """Record the start of a reconcile whose key had been due for this time."""

    def on_event_latency(self, *, seconds: float) -> None:
        """Record the time between a change and the start of the reconcile that it triggered."""

    def on_finish(self, outcome: ReconcileOutcome, *, seconds: float) -> None:
        """Record the end of a reconcile with its outcome and duration."""

    def on_breaker_open(self, key: ObjectKey, source: str) -> None:
        """Record that the breaker slows down a key; the source is the most frequent cause of its reconciles."""


class ReconcileTracer(Protocol):
    """Port for tracing: wraps each reconcile in a span."""

    def start_span(self, controller: str, key: ObjectKey, reconcile_id: str) -> AbstractContextManager[None]:
        """Return a context manager for the span of one reconcile; it records an exception that leaves the block."""
