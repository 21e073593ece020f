"""One reconcile of an owner by a function of the author: its errors become a condition, and the status is written."""

from __future__ import annotations

from datetime import timedelta
from typing import Generic, TypeVar

from konverge._internal.operator.component_factories import build_error_condition
from konverge._internal.operator.function_calls import Reconciler, await_with_timeout, check_result, name_function
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.operator.owner_events import is_caused_only_by
from konverge._internal.operator.owner_status import StatusAssignments
from konverge._internal.operator.status_writes import describe_refusal, write_fields_first
from konverge._internal.runtime import Result
from konverge.errors import ConflictError, ConnectionFailedError, KonvergeError, StatusNotStoredError, format_error

__all__ = ["FunctionReconcile"]

T = TypeVar("T")

# Prefix of the condition of a failed function; the next successful reconcile recognizes it.
_FAILED = "The reconcile failed: "


class FunctionReconcile(Generic[T]):
    """One reconcile of an owner of `Operator.reconciles`.

    Args:
        function: The author's function.
        owner: The owner as an instance of its class.
        ctx: The context of the reconcile.
        timeout: The time limit of the reconcile.
        condition_type: The condition that reports a failure.
    """

    def __init__(
        self, function: Reconciler[T], owner: T, ctx: OwnerContext, timeout: timedelta, condition_type: str
    ) -> None:
        self._function = function
        self._owner = owner
        self._ctx = ctx
        self._timeout = timeout
        self._condition_type = condition_type
        self._refusal: KonvergeError | None = None

    async def run(self) -> Result | None:
        """Call the function, and write what it has staged, in one write.

        Raises:
            Exception: The error of the function or of the status write; the condition reports it.
        """
        ctx = self._ctx
        async with ctx.flushing_status(refused=self._handle_refusal):
            try:
                result = await self._call_function()
                await write_fields_first(ctx, self._condition_type)
            except Exception as error:
                if isinstance(error, StatusNotStoredError):
                    self._handle_refusal(error)
                else:
                    self._stage_failure(error)
                raise
            reported = ctx.condition(self._condition_type)
            if reported is not None and reported.message.startswith(_FAILED):
                ctx.retire_conditions(self._condition_type)
        if self._refusal is not None:
            raise self._refusal
        return result

    async def _call_function(self) -> Result | None:
        assignments = StatusAssignments(self._owner)
        name = f"the function {name_function(self._function)}"
        result = await await_with_timeout(self._function(self._owner, self._ctx), self._timeout, name)
        assignments.check(self._ctx)
        return check_result(result, name)

    def _stage_failure(self, error: Exception) -> None:
        # Both are expected to go away, and the second one leaves no way to write the condition.
        if is_caused_only_by(error, ConflictError) or is_caused_only_by(error, ConnectionFailedError):
            return
        staged = self._ctx.condition(self._condition_type)
        if staged is None or self._condition_type not in self._ctx.staged_types or staged.status == "True":
            problem = self._ctx.secret_values.hide(format_error(error))
            self._ctx.stage(build_error_condition(self._ctx, self._condition_type, _FAILED + problem))

    def _handle_refusal(self, error: KonvergeError) -> bool:
        """Withdraw the fields that the server refused, and report it in the condition; False if there are none."""
        if not self._ctx.withdraw_fields():
            return False
        self._refusal = error
        self._ctx.stage(build_error_condition(self._ctx, self._condition_type, describe_refusal(error)))
        return True
