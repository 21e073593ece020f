"""From what each resource says to what the component says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from konverge.component.condition_reason import ConditionReason, severity_of
from konverge.primitives.resource_protocol import (
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
    """What the component's condition is to say."""

    status: ConditionReason
    message: str

    @property
    def is_ready(self) -> bool:
        """Tell whether it is one of the ready states."""
        return str(self.status) in READY


def aggregate_convergence(results: Sequence[Convergence]) -> AggregatedStatus:
    """The most critical state wins; the message tells the reasons of everything as severe as the winner.

    Args:
        results: Of the participants, in registration order: required resources that judge themselves, and any blocked
            guard. Without any, the component is ready by existing.
    """
    if all(result.status.is_ready for result in results):
        best = max(
            (ConditionReason(result.status) for result in results), key=_read_priority, default=ConditionReason.HEALTHY
        )
        return AggregatedStatus(best, HEALTHY_MESSAGE)
    winner = max(results, key=lambda result: ConditionReason(result.status).priority).status
    if winner is ConvergingStatus.BLOCKED:
        told = [result for result in results if result.status is winner]
    else:
        told = [result for result in results if severity_of(result.status) == severity_of(winner)]
    return AggregatedStatus(ConditionReason(winner), _join_reasons(result.reason for result in told))


def aggregate_grades(grades: Sequence[Grace]) -> AggregatedStatus | None:
    """How bad it is that the grace is over; None when every grace handler is content.

    Args:
        grades: Of the participants that grade themselves, a blocked one counting as Down with its guard's reason.
            Without any, nobody can vouch for the component: Down.
    """
    if not grades:
        return AggregatedStatus(ConditionReason.DOWN, f"Component is down: {_NOT_CONVERGED}")
    for worst, status, prefix in (
        (GraceStatus.DOWN, ConditionReason.DOWN, "Component is down: "),
        (GraceStatus.DEGRADED, ConditionReason.DEGRADED, "Component is degraded: "),
    ):
        told = [found for found in grades if found.status is worst]
        if told:
            return AggregatedStatus(status, prefix + (_join_reasons(found.reason for found in told) or _NOT_CONVERGED))
    return None


_PENDING_FIRST = (SuspensionStatus.PENDING_SUSPENSION, SuspensionStatus.SUSPENDING)


def aggregate_suspension(results: Sequence[Suspension]) -> AggregatedStatus:
    """The component is as suspended as its least suspended resource; without any to suspend it is suspended."""
    for status in _PENDING_FIRST:
        told = [result for result in results if result.status is status]
        if told:
            return AggregatedStatus(ConditionReason(status), _join_reasons(result.reason for result in told))
    return AggregatedStatus(ConditionReason.SUSPENDED, SUSPENDED_MESSAGE)


def _read_priority(status: ConditionReason) -> int:
    return status.priority


def _join_reasons(reasons: Iterable[str]) -> str:
    return "; ".join(reason for reason in reasons if reason)
