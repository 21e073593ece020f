"""The component's condition as a state machine. Pure.

In go the earlier condition and this pass's verdict, out comes the next condition. Transition times carry meaning: the
grace period is measured from the last change of *status*. So the rules about when a time is kept and when it is new
live here, in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from konverge.component.aggregation import AggregatedStatus
from konverge.component.condition_reason import PROGRESS_REASONS, ConditionReason
from konverge.kube import Condition, Object

__all__ = [
    "apply_grace",
    "build_condition",
    "compute_grace_deadline",
    "is_barrier_active",
    "is_expired",
    "read_generation",
    "requeue_time",
]

# Reasons that stand for "the component was not at work". Leaving one of these groups, for whatever else, starts a fresh
# condition: otherwise a component that is switched on again would inherit an old transition time and with
# it an expired grace. By the reason as it is written: one that nobody knows does not count as ``Unknown`` here, since
# it has passed the barrier too.
_STEADY_REASONS: Mapping[str, str] = {
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
    """The generation of the owner's spec, which its conditions observe; None for a kind without."""
    generation = owner["metadata"].get("generation")
    return generation if isinstance(generation, int) else None


def is_barrier_active(earlier: Condition | None) -> bool:
    """Tell whether prerequisites still count: the component has never got past its initialization.

    The barrier is armed by the four reasons of the specification, "Prerequisites", taken literally; any other reason,
    also one that nobody knows, has passed it.
    """
    return earlier is None or earlier.reason in _BARRIER


def build_condition(
    condition_type: str, verdict: AggregatedStatus, earlier: Condition | None, *, generation: int | None, now: datetime
) -> Condition:
    """The condition to store for a verdict.

    Args:
        condition_type: The component's.
        verdict: What it is to say.
        earlier: The condition that it replaces: the stored one, or the one already staged in this pass.
        generation: The owner's generation, to be observed.
        now: The time of the pass.
    """
    status = verdict.status.condition_status
    moment: datetime | None = None
    if earlier is not None and earlier.status == status and not _leaves_steady_reason(earlier, verdict.status):
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
    """What a component at work says: the aggregate, kept from flickering, or its grade once the grace is over.

    Args:
        verdict: The aggregate of this pass.
        earlier: The stored condition.
        period: The grace period; zero never ends.
        now: The time of the pass.
        graded: Asks the resources how bad it is; called only when the grace is over.
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


def compute_grace_deadline(condition: Condition | None, period: timedelta) -> datetime | None:
    """The moment until which (inclusive) a component that is not ready has grace; None when no clock runs.

    The clock starts at the condition's last change of *status*; a change of reason alone does not restart it. It does
    not run while the component was ready or at rest: it starts afresh when that ends.
    """
    if condition is None or condition.last_transition_time is None or period <= timedelta(0):
        return None
    if condition.status != "False" or condition.reason in _STEADY_REASONS:
        return None
    if period > _END_OF_TIME - condition.last_transition_time:
        return None  # timedelta.max, for one: what ends after the calendar never ends
    return condition.last_transition_time + period


def is_expired(condition: Condition | None, period: timedelta, now: datetime) -> bool:
    """Tell whether the component has had its grace. Strict: at the very moment, not yet."""
    deadline = compute_grace_deadline(condition, period)
    return deadline is not None and now > deadline


def requeue_time(condition: Condition, period: timedelta, now: datetime) -> datetime | None:
    """When the component must be looked at again only because its grace will be over; None when it need not.

    The first whole second after the deadline, since stored times are whole seconds and expiry is strict. A pass that
    failed need not ask: it is tried again anyway.
    """
    deadline = compute_grace_deadline(condition, period)
    if deadline is None or now > deadline:
        return None
    return deadline.replace(microsecond=0) + timedelta(seconds=1)


def _leaves_steady_reason(earlier: Condition, status: ConditionReason) -> bool:
    was = _STEADY_REASONS.get(earlier.reason)
    return was is not None and _STEADY_REASONS.get(status) != was
