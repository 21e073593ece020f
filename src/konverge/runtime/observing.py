"""What a controller tells about its work: the ports that metrics and tracing implement. None of them may wait or raise.

What can be read at any time (depth, active workers, the longest run) is not told here: whoever exports it reads
`Controller` and `Queue`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol

from konverge.kube import ObjectKey

__all__ = ["ControllerObserver", "Outcome", "PassTracer"]


class Outcome(Enum):
    """How a pass ended."""

    SUCCESS = "success"
    REQUEUE_AFTER = "requeue_after"
    ERROR = "error"
    TERMINAL = "terminal"
    TIMEOUT = "timeout"
    ABANDONED = "abandoned"  # cancelled, because the right to reconcile the key was lost


class FailureReporter(Protocol):
    """Reports on objects whose passes fail; it must neither wait nor raise."""

    def failed(self, key: ObjectKey, error: BaseException, times: int) -> bool:
        """A pass has failed, so many `times` in a row; tells whether that was reported."""

    def recovered(self, key: ObjectKey) -> None:
        """A pass has succeeded after a failure that was reported."""


class ControllerObserver(Protocol):
    """Hears what one controller does."""

    def added(self, *, priority: int) -> None:
        """A key that did not wait before has been put into the queue."""

    def retried(self) -> None:
        """A key has been put back after a failure."""

    def started(self, *, waited_seconds: float) -> None:
        """A pass starts; its key had been due for so long."""

    def answered(self, *, seconds: float) -> None:
        """That pass answers a change that came so long ago."""

    def finished(self, outcome: Outcome, *, seconds: float) -> None:
        """A pass has ended after so long."""

    def breaker_opened(self, key: ObjectKey, source: str) -> None:
        """The key's passes come too fast for no good, mostly because of that source, and are slowed down."""


class PassTracer(Protocol):
    """Wraps each pass in a span."""

    def span(self, controller: str, key: ObjectKey, reconcile_id: str) -> AbstractContextManager[None]:
        """The span of one pass; an exception that leaves it is recorded on it."""
