"""From what each resource says to what the component says. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from konverge.component.status import Status, severity
from konverge.primitives.lifecycle import (
    READY,
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Suspension,
    SuspensionStatus,
)

__all__ = ["HEALTHY_MESSAGE", "SUSPENDED_MESSAGE", "Verdict", "converge", "grade", "suspend"]

HEALTHY_MESSAGE = "Component is healthy."
SUSPENDED_MESSAGE = "All resources are suspended."
_NOT_CONVERGED = "Component failed to converge within grace period."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the component's condition is to say."""

    status: Status
    message: str

    @property
    def is_ready(self) -> bool:
        """Tell whether it is one of the ready states."""
        return str(self.status) in READY


def converge(results: Sequence[Convergence]) -> Verdict:
    """The most critical state wins; the message tells the reasons of everything as severe as the winner.

    Args:
        results: Of the participants, in registration order: required resources that judge themselves, and any blocked
            guard. Without any, the component is ready by existing.
    """
    if all(result.status.is_ready for result in results):
        best = max((Status(result.status) for result in results), key=_priority, default=Status.HEALTHY)
        return Verdict(best, HEALTHY_MESSAGE)
    winner = max(results, key=lambda result: Status(result.status).priority).status
    if winner is ConvergingStatus.BLOCKED:
        told = [result for result in results if result.status is winner]
    else:
        told = [result for result in results if severity(result.status) == severity(winner)]
    return Verdict(Status(winner), _joined(result.reason for result in told))


def grade(grades: Sequence[Grace]) -> Verdict | None:
    """How bad it is that the grace is over; None when every grace handler is content.

    Args:
        grades: Of the participants that grade themselves, a blocked one counting as Down with its guard's reason.
            Without any, nobody can vouch for the component: Down.
    """
    if not grades:
        return Verdict(Status.DOWN, f"Component is down: {_NOT_CONVERGED}")
    for worst, status, prefix in (
        (GraceStatus.DOWN, Status.DOWN, "Component is down: "),
        (GraceStatus.DEGRADED, Status.DEGRADED, "Component is degraded: "),
    ):
        told = [found for found in grades if found.status is worst]
        if told:
            return Verdict(status, prefix + (_joined(found.reason for found in told) or _NOT_CONVERGED))
    return None


_PENDING_FIRST = (SuspensionStatus.PENDING_SUSPENSION, SuspensionStatus.SUSPENDING)


def suspend(results: Sequence[Suspension]) -> Verdict:
    """The component is as suspended as its least suspended resource; without any to suspend it is suspended."""
    for status in _PENDING_FIRST:
        told = [result for result in results if result.status is status]
        if told:
            return Verdict(Status(status), _joined(result.reason for result in told))
    return Verdict(Status.SUSPENDED, SUSPENDED_MESSAGE)


def _priority(status: Status) -> int:
    return status.priority


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(reason for reason in reasons if reason)
