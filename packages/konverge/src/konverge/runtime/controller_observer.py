"""What a controller tells about its work: the ports that metrics and tracing implement. None of them may wait or raise.

What can be read at any time (depth, active workers, the longest run) is not told here: whoever exports it reads
`Controller` and `Queue`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from konverge.kube import ObjectKey

__all__ = ["ControllerObserver", "ReconcileOutcome", "ReconcileTracer"]


class ReconcileOutcome(Enum):
    """How a pass ended."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    TIMEOUT = "timeout"
    ABANDONED = "abandoned"  # cancelled, because the right to reconcile the key was lost


class FailureReporter(Protocol):
    """Reports on objects whose passes fail; it must neither wait nor raise."""

    def report_failure(self, key: ObjectKey, error: BaseException, times: int) -> bool:
        """A pass has failed, so many `times` in a row; tells whether that was reported."""

    def report_recovery(self, key: ObjectKey) -> None:
        """A pass has succeeded after a failure that was reported."""


class ControllerObserver(Protocol):
    """Hears what one controller does."""

    def on_add(self, *, priority: int) -> None:
        """A key that did not wait before has been put into the queue."""

    def on_retry(self) -> None:
        """A key has been put back after a failure."""

    def on_start(self, *, waited_seconds: float) -> None:
        """A pass starts; its key had been due for so long."""

    def on_event_latency(self, *, seconds: float) -> None:
        """That pass answers a change that came so long ago."""

    def on_finish(self, outcome: ReconcileOutcome, *, seconds: float) -> None:
        """A pass has ended after so long."""

    def on_breaker_open(self, key: ObjectKey, source: str) -> None:
        """The key's passes come too fast for no good, mostly because of that source, and are slowed down."""


class ReconcileTracer(Protocol):
    """Wraps each pass in a span."""

    def start_span(self, controller: str, key: ObjectKey, reconcile_id: str) -> AbstractContextManager[None]:
        """The span of one pass; an exception that leaves it is recorded on it."""
