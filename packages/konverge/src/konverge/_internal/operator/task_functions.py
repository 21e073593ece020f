"""Runs of timers and long-running tasks for one owner: the context, the status, and events about failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from konverge._internal.crd import decode
from konverge._internal.kube import Object
from konverge._internal.operator.author_reconciler import AuthorReconciler
from konverge._internal.operator.function_calls import Reconciler, check_result, name_function
from konverge._internal.operator.owner_events import is_expected_to_pass
from konverge._internal.operator.owner_status import StatusAssignments
from konverge._internal.runtime import CachedClient, Result
from konverge.errors import format_error

if TYPE_CHECKING:
    from konverge._internal.runtime.event_recorder import ClusterEventRecorder

__all__ = ["TaskEventReporter", "TaskFunction"]

T = TypeVar("T")


class TaskFunction(Generic[T]):
    """The run of an author's function for one owner (`runtime.owner_tasks.RunOwnerTask`).

    Args:
        reconciler: The reconcile of the owners, which makes the context.
        function: The author's function.
    """

    def __init__(self, reconciler: AuthorReconciler[T], function: Reconciler[T]) -> None:
        self._reconciler = reconciler
        self._function = function

    async def __call__(self, owner: Object, client: CachedClient) -> Result | None:
        """Call the function, and write what it has staged.

        Raises:
            konverge.errors.DecodeError: The owner does not fit its class; its reconcile reports this.
            Exception: The error of the function, or of the status write.
        """
        ctx = self._reconciler.create_context(owner, client)
        typed: T = ctx.call(decode, self._reconciler.cls, ctx.owner_as_read)
        assignments = StatusAssignments(typed)
        async with ctx.flushing_status():
            result = check_result(await self._function(typed, ctx), f"the function {name_function(self._function)}")
            assignments.check(ctx)
        return result


class TaskEventReporter:
    """A reporter that records events on owners whose timer or task fails.

    Args:
        events: The recorder.
        reason: The reason of the events about failures.
        function: The name of the function.
    """

    def __init__(self, events: ClusterEventRecorder, reason: str, function: str) -> None:
        self._events = events
        self._reason = reason
        self._function = function

    def report_failure(self, owner: Object, error: BaseException, times: int) -> bool:
        """Record that a run for the owner failed; return False for a failure without an event."""
        if is_expected_to_pass(error, times):
            return False
        message = f"{self._function}: {format_error(error)}"
        self._events.warning(owner, reason=self._reason, message=message, action="Run")
        return True

    def report_recovery(self, owner: Object) -> None:
        """Record that a run has succeeded after a reported failure."""
        self._events.event(owner, reason="Recovered", message=f"{self._function} succeeds again.", action="Run")
