"""Calls of a resource's functions, which can be author code: within the time limit, with the step in each error.

A result of the wrong type is refused: a value that is not a status must never count as ready or suspended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from konverge._internal.component.component_spec import RegisteredResource
from konverge._internal.component.error_wrapping import wrap_errors
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    GuardResult,
    GuardStatus,
    Resource,
    Suspension,
    SuspensionStatus,
    handles_secret,
)
from konverge.errors import ReconcileError

__all__ = ["CONVERGENCES", "GRADES", "GUARDS", "SUSPENSIONS", "ExpectedResult", "call_lifecycle"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExpectedResult:
    """The result type of a lifecycle function.

    Args:
        kind: The class of the result.
        statuses: The class of its field ``status``.
        may_be_none: True if the function can return None.
    """

    kind: type
    statuses: type[StrEnum]
    may_be_none: bool = False

    def check(self, answer: object, resource: Resource) -> None:
        """Refuse a value of another type.

        Raises:
            konverge.errors.ReconcileError: The value is not such a result, or its reason is not a text.
        """
        if answer is None and self.may_be_none:
            return
        # By type: a string that is spelled like a status equals it, but is not identical with it.
        if not isinstance(answer, self.kind) or type(getattr(answer, "status", None)) is not self.statuses:
            # A value that is not a status can be a part of the object.
            found = f"a {type(answer).__name__}" if handles_secret(resource) else repr(answer)
            raise ReconcileError(f"expected a {self.kind.__name__} with a {self.statuses.__name__}, found {found}")
        # For example ``guards.blocked(error)``: an exception is not a string.
        reason: object = getattr(answer, "reason", None)
        if not isinstance(reason, str):
            raise ReconcileError(
                f"expected a {self.kind.__name__} with a reason as text, found {type(reason).__name__}"
            )


GUARDS = ExpectedResult(GuardResult, GuardStatus)
CONVERGENCES = ExpectedResult(Convergence, ConvergingStatus, may_be_none=True)
GRADES = ExpectedResult(Grace, GraceStatus, may_be_none=True)
SUSPENSIONS = ExpectedResult(Suspension, SuspensionStatus)


def call_lifecycle(
    ctx: ReconcileContext,
    step: str,
    entry: RegisteredResource,
    function: Callable[..., T],
    *args: object,
    expected: ExpectedResult | None = None,
) -> T:
    """Call a function of a resource, and refuse a result of the wrong type.

    Args:
        ctx: The reconcile.
        step: The step that an error names.
        entry: The resource.
        function: The function.
        *args: Its arguments.
        expected: The type of the result; None accepts any. Known values of Secrets are redacted in its reason.

    Raises:
        konverge.errors.ReconcileError: The function failed or returned another type.
    """
    with wrap_errors(step, entry.identity):
        answer = ctx.call(function, *args)
        if expected is not None:
            expected.check(answer, entry.resource)
            answer = ctx.hide_secret_values(answer, entry.resource.key)
        return answer
