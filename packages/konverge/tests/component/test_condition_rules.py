"""The state machine of the condition: stickiness, transition times, grace period and requeue."""

from datetime import UTC, datetime, timedelta

import pytest

from konverge._internal.component.aggregation import AggregatedStatus
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.component.condition_rules import (
    apply_grace,
    build_condition,
    is_barrier_active,
    is_expired,
    requeue_time,
)
from konverge.kube import Condition

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
REASONS = [status.value for status in ConditionReason]


def earlier(reason: str, *, at: datetime = NOON) -> Condition:
    status = ConditionReason.of_reason(reason).condition_status
    return Condition("FrontendReady", status, reason, "before", 1, at)


def stage(status: ConditionReason, before: Condition | None, now: datetime) -> Condition:
    return build_condition("FrontendReady", AggregatedStatus(status, "now"), before, generation=2, now=now)


def converging(
    status: ConditionReason, before: Condition | None, now: datetime, graded: AggregatedStatus | None = None
) -> AggregatedStatus:
    return apply_grace(AggregatedStatus(status, "aggregate"), before, period=MINUTE, now=now, graded=lambda: graded)


def never_asked() -> AggregatedStatus | None:
    raise AssertionError("grading was asked for")


@pytest.mark.parametrize("reason", [*REASONS, "ReasonOfAnOlderVersion"])
def test_barrier_is_armed_by_exactly_four_reasons(reason: str) -> None:
    armed = reason in {"Unknown", "PrerequisiteNotMet", "Disabled", "FeatureGateError"}
    assert is_barrier_active(earlier(reason)) is armed


def test_barrier_is_armed_before_the_first_reconcile() -> None:
    assert is_barrier_active(None)


def test_transition_time_stays_while_the_status_is_equal() -> None:
    assert stage(ConditionReason.SCALING, earlier("Creating"), NOON + MINUTE).last_transition_time == NOON


def test_transition_time_is_new_when_the_status_changes() -> None:
    assert stage(ConditionReason.CREATING, earlier("Healthy"), NOON + MINUTE).last_transition_time == NOON + MINUTE


def test_transition_time_is_in_whole_seconds() -> None:
    now = NOON + timedelta(microseconds=999_999)
    assert stage(ConditionReason.CREATING, None, now).last_transition_time == NOON


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Disabled", ConditionReason.CREATING),
        ("Disabled", ConditionReason.HEALTHY),
        ("Disabled", ConditionReason.SUSPENDED),
        ("Suspended", ConditionReason.HEALTHY),
        ("Suspending", ConditionReason.ERROR),
        ("PendingSuspension", ConditionReason.DISABLED),
        ("PrerequisiteNotMet", ConditionReason.CREATING),
        ("PrerequisiteNotMet", ConditionReason.ERROR),
        ("FeatureGateError", ConditionReason.CREATING),
        ("FeatureGateError", ConditionReason.PREREQUISITE_NOT_MET),
        ("Unknown", ConditionReason.PREREQUISITE_NOT_MET),
    ],
)
def test_leaving_rest_starts_a_fresh_transition_time(before: str, after: ConditionReason) -> None:
    assert stage(after, earlier(before), NOON + MINUTE).last_transition_time == NOON + MINUTE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Disabled", ConditionReason.DISABLED),
        ("PendingSuspension", ConditionReason.SUSPENDING),
        ("Suspending", ConditionReason.SUSPENDED),
        ("PrerequisiteNotMet", ConditionReason.PREREQUISITE_NOT_MET),
        ("Blocked", ConditionReason.CREATING),
        ("Error", ConditionReason.CREATING),
    ],
)
def test_other_changes_of_reason_keep_the_transition_time(before: str, after: ConditionReason) -> None:
    assert stage(after, earlier(before), NOON + MINUTE).last_transition_time == NOON


@pytest.mark.parametrize("before", ["Creating", "Updating", "Scaling"])
@pytest.mark.parametrize("now", [ConditionReason.CREATING, ConditionReason.UPDATING, ConditionReason.SCALING])
def test_progress_sticks_and_the_message_follows(before: str, now: ConditionReason) -> None:
    assert converging(now, earlier(before), NOON) == AggregatedStatus(ConditionReason(before), "aggregate")


@pytest.mark.parametrize(
    "now",
    [
        ConditionReason.FAILING,
        ConditionReason.BLOCKED,
        ConditionReason.TASK_RUNNING,
        ConditionReason.OPERATION_PENDING,
        ConditionReason.TASK_PENDING,
    ],
)
def test_other_states_show_at_once(now: ConditionReason) -> None:
    assert converging(now, earlier("Creating"), NOON) == AggregatedStatus(now, "aggregate")


@pytest.mark.parametrize("before", REASONS)
def test_ready_shows_at_once_from_any_state(before: str) -> None:
    ready = AggregatedStatus(ConditionReason.OPERATIONAL, "Component is healthy.")
    late = NOON + 10 * MINUTE
    assert apply_grace(ready, earlier(before), period=MINUTE, now=late, graded=never_asked) == ready


def test_an_unknown_component_has_all_of_its_grace_before_it() -> None:
    unknown = Condition("FrontendReady", "False", "Unknown", "No components were aggregated.", 1, NOON)
    later = NOON + 10 * MINUTE
    assert (
        converging(ConditionReason.CREATING, unknown, later, AggregatedStatus(ConditionReason.DOWN, "late")).status
        is ConditionReason.CREATING
    )
    assert stage(ConditionReason.CREATING, unknown, later).last_transition_time == later


def test_a_reason_that_nobody_knows_is_no_rest() -> None:
    other = Condition("FrontendReady", "False", "ReasonOfAnOlderVersion", "before", 1, NOON)
    later = NOON + 10 * MINUTE
    assert (
        converging(ConditionReason.CREATING, other, later, AggregatedStatus(ConditionReason.DOWN, "late")).status
        is ConditionReason.DOWN
    )
    assert stage(ConditionReason.CREATING, other, later).last_transition_time == NOON


def test_grace_is_over_strictly_after_the_period() -> None:
    assert not is_expired(earlier("Creating"), MINUTE, NOON + MINUTE)
    assert is_expired(earlier("Creating"), MINUTE, NOON + MINUTE + timedelta(microseconds=1))


def test_a_period_of_zero_never_ends() -> None:
    assert not is_expired(earlier("Creating"), timedelta(0), NOON + timedelta(days=365))


@pytest.mark.parametrize(
    "reason", ["Creating", "Failing", "Blocked", "Error", "TaskRunning", "OperationPending", "Down"]
)
def test_whatever_is_not_ready_is_graded_when_the_grace_is_over(reason: str) -> None:
    down = AggregatedStatus(ConditionReason.DOWN, "Component is down: dead")
    assert converging(ConditionReason.CREATING, earlier(reason), NOON + 2 * MINUTE, graded=down) == down


@pytest.mark.parametrize(
    "reason", ["Healthy", "Operational", "Completed", "Disabled", "Suspended", "PrerequisiteNotMet"]
)
def test_grace_starts_afresh_after_being_ready_or_at_rest(reason: str) -> None:
    verdict = apply_grace(
        AggregatedStatus(ConditionReason.CREATING, "m"),
        earlier(reason),
        period=MINUTE,
        now=NOON + 2 * MINUTE,
        graded=never_asked,
    )
    assert verdict.status is ConditionReason.CREATING


def test_when_every_grace_handler_is_content_the_aggregate_shows_again() -> None:
    assert (
        converging(ConditionReason.SCALING, earlier("Down"), NOON + 2 * MINUTE, graded=None).status
        is ConditionReason.SCALING
    )


def test_the_wake_up_is_the_first_whole_second_after_the_deadline() -> None:
    now = NOON + timedelta(seconds=10.25)
    assert requeue_time(earlier("Creating"), MINUTE, now) == NOON + timedelta(seconds=61)
    assert requeue_time(earlier("Creating"), timedelta(seconds=60.5), now) == NOON + timedelta(seconds=61)


def test_at_the_wake_up_the_grace_is_over() -> None:
    moment = requeue_time(earlier("Blocked"), MINUTE, NOON + timedelta(seconds=10.25))
    assert moment is not None
    assert is_expired(earlier("Blocked"), MINUTE, moment)


@pytest.mark.parametrize(
    "reason",
    [
        *("Healthy", "Operational", "Completed"),
        *("Suspended", "Suspending", "PendingSuspension", "Disabled", "PrerequisiteNotMet", "FeatureGateError"),
    ],
)
def test_nothing_wakes_a_component_that_does_not_wait_for_its_grace(reason: str) -> None:
    assert requeue_time(earlier(reason), MINUTE, NOON) is None


@pytest.mark.parametrize("begun", [datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)])
def test_a_grace_that_ends_after_the_calendar_never_ends(begun: datetime) -> None:
    waiting = Condition("FrontendReady", "False", "Creating", "", 1, begun)
    now = datetime(2026, 1, 2, tzinfo=UTC)

    assert not is_expired(waiting, timedelta.max, now)
    assert requeue_time(waiting, timedelta.max, now) is None
