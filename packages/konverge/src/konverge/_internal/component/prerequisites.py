"""Prerequisites: conditions for the start of a component. After the start they are not checked again."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import find_condition

__all__ = ["MET", "DependsOn", "Prerequisite", "PrerequisiteResult", "PrerequisiteStatus", "depends_on", "not_met"]


class PrerequisiteStatus(StrEnum):
    """The result of a check: met or not met."""

    MET = "Met"
    NOT_MET = "NotMet"


@dataclass(frozen=True, slots=True)
class PrerequisiteResult:
    """The result of a check and, if the prerequisite is not met, the message of the condition."""

    status: PrerequisiteStatus
    reason: str = ""


MET = PrerequisiteResult(PrerequisiteStatus.MET)


def not_met(reason: str) -> PrerequisiteResult:
    """Return a result that keeps the component waiting; the reason becomes the condition's message unchanged."""
    return PrerequisiteResult(PrerequisiteStatus.NOT_MET, reason)


class Prerequisite(Protocol):
    """A custom prerequisite; `check` may be a coroutine function."""

    def check(self, ctx: ReconcileContext) -> PrerequisiteResult | Awaitable[PrerequisiteResult]:
        """Check the owner, or read objects with the context's client.

        An exception counts as not met, and the reconcile raises it.
        """


@dataclass(frozen=True, slots=True)
class DependsOn:
    """A prerequisite that waits for another condition of the owner; `depends_on` returns it.

    Args:
        condition_type: The owner's condition that must be True.
    """

    condition_type: str

    def check(self, ctx: ReconcileContext) -> PrerequisiteResult:
        """Check the owner's condition as it is in memory."""
        condition = find_condition(ctx.owner, self.condition_type)
        if condition is None:
            owner = f"{ctx.owner.get('kind')}/{ctx.owner['metadata']['name']}"
            return not_met(f'Condition "{self.condition_type}" not found on {owner}')
        if condition.status != "True":
            return not_met(
                f'Prerequisite not met: waiting for condition "{self.condition_type}" to become True '
                f"(currently {condition.status}: {condition.message})"
            )
        return MET


def depends_on(condition_type: str) -> Prerequisite:
    """Return a prerequisite that waits until the owner's condition of that type is True.

    It reads the conditions in memory, including those that this reconcile staged earlier. It sends no request.
    """
    return DependsOn(condition_type)
