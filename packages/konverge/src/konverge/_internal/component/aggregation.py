"""Aggregation: the status of the component from the statuses of its resources. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from konverge._internal.component.condition_reason import ConditionReason, severity_of
from konverge._internal.primitives.resource_protocol import (
    READY,
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Suspension,
    SuspensionStatus,
)

__all__ = [
    "HEALTHY_MESSAGE",
    "SUSPENDED_MESSAGE",
    "AggregatedStatus",
    "aggregate_convergence",
    "aggregate_grades",
    "aggregate_suspension",
]

HEALTHY_MESSAGE = "Component is healthy."
SUSPENDED_MESSAGE = "All resources are suspended."
_NOT_CONVERGED = "Component failed to converge within grace period."


@dataclass(frozen=True, slots=True)
class AggregatedStatus:
    """The reason and message for the component's condition."""

    status: ConditionReason
    message: str

    @property
    def is_ready(self) -> bool:
        """True for a ready status."""
        return str(self.status) in READY


def aggregate_convergence(results: Sequence[Convergence]) -> AggregatedStatus:
    """Return the most critical status; the message joins the reasons of all results of the same severity.

    Args:
        results: The results of the participants in registration order: required resources with a converging status, and
            any blocked guard. Without any, the component is ready.
    """
    if all(result.status.is_ready for result in results):
        best = max(
            (ConditionReason(result.status) for result in results), key=_read_priority, default=ConditionReason.HEALTHY
        )
        return AggregatedStatus(best, HEALTHY_MESSAGE)
    winner = max(results, key=lambda result: ConditionReason(result.status).priority).status
    if winner is ConvergingStatus.BLOCKED:
        reported = [result for result in results if result.status is winner]
    else:
        reported = [result for result in results if severity_of(result.status) == severity_of(winner)]
    return AggregatedStatus(ConditionReason(winner), _join_reasons(result.reason for result in reported))


def aggregate_grades(grades: Sequence[Grace]) -> AggregatedStatus | None:
    """Return the worst grade after the grace period; None if every grace handler reports Healthy.

    Args:
        grades: The grades of the participants. A blocked resource counts as Down with its guard's reason. Without any
            grade, the component is Down.
    """
    if not grades:
        return AggregatedStatus(ConditionReason.DOWN, f"Component is down: {_NOT_CONVERGED}")
    for worst, status, prefix in (
        (GraceStatus.DOWN, ConditionReason.DOWN, "Component is down: "),
        (GraceStatus.DEGRADED, ConditionReason.DEGRADED, "Component is degraded: "),
    ):
        reported = [grade for grade in grades if grade.status is worst]
        if reported:
            reasons = _join_reasons(grade.reason for grade in reported)
            return AggregatedStatus(status, prefix + (reasons or _NOT_CONVERGED))
    return None


_PENDING_FIRST = (SuspensionStatus.PENDING_SUSPENSION, SuspensionStatus.SUSPENDING)


def aggregate_suspension(results: Sequence[Suspension]) -> AggregatedStatus:
    """Return the status of the least suspended resource; without any resource to suspend, Suspended."""
    for status in _PENDING_FIRST:
        reported = [result for result in results if result.status is status]
        if reported:
            return AggregatedStatus(ConditionReason(status), _join_reasons(result.reason for result in reported))
    return AggregatedStatus(ConditionReason.SUSPENDED, SUSPENDED_MESSAGE)


def _read_priority(status: ConditionReason) -> int:
    return status.priority


def _join_reasons(reasons: Iterable[str]) -> str:
    return "; ".join(reason for reason in reasons if reason)
