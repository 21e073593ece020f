"""Prerequisites: what must be true before a component is created. They gate its beginning, never its life."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from konverge.component.reconcile_context import ReconcileContext
from konverge.kube import find_condition

__all__ = ["MET", "DependsOn", "Prerequisite", "PrerequisiteResult", "PrerequisiteStatus", "depends_on", "not_met"]


class PrerequisiteStatus(StrEnum):
    """A prerequisite's verdict."""

    MET = "Met"
    NOT_MET = "NotMet"


@dataclass(frozen=True, slots=True)
class PrerequisiteResult:
    """A prerequisite's verdict and, when it is not met, the message of the condition."""

    status: PrerequisiteStatus
    reason: str = ""


MET = PrerequisiteResult(PrerequisiteStatus.MET)


def not_met(reason: str) -> PrerequisiteResult:
    """A verdict that keeps the component waiting; the reason becomes the condition's message as it is."""
    return PrerequisiteResult(PrerequisiteStatus.NOT_MET, reason)


class Prerequisite(Protocol):
    """A custom prerequisite; `check` may be a coroutine function."""

    def check(self, ctx: ReconcileContext) -> PrerequisiteResult | Awaitable[PrerequisiteResult]:
        """Look at the owner, or ask the context's client.

        An exception counts as not met, and is raised by the reconcile.
        """


@dataclass(frozen=True, slots=True)
class DependsOn:
    """What `depends_on` answers.

    Args:
        condition_type: The owner's condition that must be True.
    """

    condition_type: str

    def check(self, ctx: ReconcileContext) -> PrerequisiteResult:
        """Look at the owner's condition, as it stands in memory."""
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
    """Wait until the owner's condition of that type is True.

    The owner's conditions in memory are read, those staged earlier in the same pass included; the cluster is not asked.
    """
    return DependsOn(condition_type)
