"""The component's condition as a state machine. Pure.

The input is the earlier condition and the aggregated status of this reconcile, the output is the next condition. The
grace period starts at the last change of *status*. Therefore this module has all rules about transition times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from konverge._internal.component.aggregation import AggregatedStatus
from konverge._internal.component.condition_reason import PROGRESS_REASONS, ConditionReason
from konverge._internal.kube import Condition, Object

__all__ = [
    "apply_grace",
    "build_condition",
    "compute_grace_deadline",
    "find_not_ready_time",
    "is_barrier_active",
    "is_expired",
    "read_generation",
    "requeue_time",
]

# Reasons of a component that was not active. A change from one of these groups to any other reason starts a new
# condition: otherwise a component that is enabled again would inherit an old transition time, and with it an expired
# grace period. The keys are literal reasons: an unrecognized reason does not count as ``Unknown`` here, because it has
# passed the barrier too.
_INACTIVE_REASONS: Mapping[str, str] = {
    ConditionReason.UNKNOWN: "unknown",
    ConditionReason.DISABLED: "disabled",
    ConditionReason.FEATURE_GATE_ERROR: "gate error",
    ConditionReason.PREREQUISITE_NOT_MET: "prerequisite",
    ConditionReason.PENDING_SUSPENSION: "suspension",
    ConditionReason.SUSPENDING: "suspension",
    ConditionReason.SUSPENDED: "suspension",
}

_END_OF_TIME = datetime(9999, 12, 31, tzinfo=UTC)

_BARRIER = frozenset({ConditionReason.UNKNOWN.value, "PrerequisiteNotMet", "Disabled", "FeatureGateError"})


def read_generation(owner: Object) -> int | None:
    """Return the generation of the owner's spec, which its conditions observe; None for a kind without generations."""
    generation = owner["metadata"].get("generation")
    return generation if isinstance(generation, int) else None


def is_barrier_active(earlier: Condition | None) -> bool:
    """Return True if prerequisites still count, because the component has never passed its initialization.

    The four reasons of the specification ("Prerequisites") activate the barrier, taken literally. Any other reason,
    also an unrecognized one, has passed it.
    """
    return earlier is None or earlier.reason in _BARRIER


def build_condition(
    condition_type: str, verdict: AggregatedStatus, earlier: Condition | None, *, generation: int | None, now: datetime
) -> Condition:
    """Build the condition for an aggregated status.

    Args:
        condition_type: The component's condition type.
        verdict: The aggregated status.
        earlier: The condition that it replaces: the stored one, or one that this reconcile staged already.
        generation: The owner's generation, which the condition observes.
        now: The time of the reconcile.
    """
    status = verdict.status.condition_status
    moment: datetime | None = None
    if earlier is not None and earlier.status == status and not _leaves_inactive_reason(earlier, verdict.status):
        moment = earlier.last_transition_time
    return Condition(
        type=condition_type,
        status=status,
        reason=verdict.status.value,
        message=verdict.message,
        observed_generation=generation,
        last_transition_time=moment or now.replace(microsecond=0),
    )


def apply_grace(
    verdict: AggregatedStatus,
    earlier: Condition | None,
    *,
    period: timedelta,
    now: datetime,
    graded: Callable[[], AggregatedStatus | None],
) -> AggregatedStatus:
    """Return the status of an active component: the aggregate without flicker, or its grade after the grace period.

    Args:
        verdict: The aggregate of this reconcile.
        earlier: The stored condition.
        period: The grace period; zero never ends.
        now: The time of the reconcile.
        graded: Grades the resources; called only after the grace period.
    """
    if verdict.is_ready:
        return verdict
    if is_expired(earlier, period, now):
        severity = graded()
        if severity is not None:
            return severity
    if (
        earlier is not None
        and verdict.status in PROGRESS_REASONS
        and ConditionReason.of_reason(earlier.reason) in PROGRESS_REASONS
    ):
        return AggregatedStatus(ConditionReason(earlier.reason), verdict.message)
    return verdict


def find_not_ready_time(condition: Condition | None) -> datetime | None:
    """Return the time since which an active component is not ready; None if it is ready or inactive."""
    if condition is None or condition.status != "False" or condition.reason in _INACTIVE_REASONS:
        return None
    return condition.last_transition_time


def compute_grace_deadline(condition: Condition | None, period: timedelta) -> datetime | None:
    """Return the end (inclusive) of the grace period of a component that is not ready; None if it is not running.

    The period starts at the condition's last change of *status*; a change of reason alone does not restart it. It does
    not run while the component is ready or inactive, and starts again afterwards.
    """
    since = find_not_ready_time(condition)
    if since is None or period <= timedelta(0):
        return None
    if period > _END_OF_TIME - since:
        return None  # for example timedelta.max: an end after the last calendar date never comes
    return since + period


def is_expired(condition: Condition | None, period: timedelta, now: datetime) -> bool:
    """Return True if the grace period has ended; False at the exact moment of the end."""
    deadline = compute_grace_deadline(condition, period)
    return deadline is not None and now > deadline


def requeue_time(condition: Condition, period: timedelta, now: datetime) -> datetime | None:
    """Return the time of the requeue for the end of the grace period; None if no requeue is necessary.

    It is the first whole second after the deadline, because stored times are whole seconds and expiry is strict. A
    reconcile that failed requires no requeue: it is retried.
    """
    deadline = compute_grace_deadline(condition, period)
    if deadline is None or now > deadline:
        return None
    return deadline.replace(microsecond=0) + timedelta(seconds=1)


def _leaves_inactive_reason(earlier: Condition, status: ConditionReason) -> bool:
    was = _INACTIVE_REASONS.get(earlier.reason)
    return was is not None and _INACTIVE_REASONS.get(status) != was
