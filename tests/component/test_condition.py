"""The condition's state machine: stickiness, transition times, grace and the wake-up."""

from datetime import UTC, datetime, timedelta

import pytest

from konverge.component.aggregation import Verdict
from konverge.component.condition import is_barrier_active, is_expired, staged, wake_up, with_grace
from konverge.component.status import Status
from konverge.kube import Condition

NOON = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
REASONS = [status.value for status in Status]


def earlier(reason: str, *, at: datetime = NOON) -> Condition:
    status = Status.of_reason(reason).condition_status
    return Condition("FrontendReady", status, reason, "before", 1, at)


def stage(status: Status, before: Condition | None, now: datetime) -> Condition:
    return staged("FrontendReady", Verdict(status, "now"), before, generation=2, now=now)


def converging(status: Status, before: Condition | None, now: datetime, graded: Verdict | None = None) -> Verdict:
    return with_grace(Verdict(status, "aggregate"), before, period=MINUTE, now=now, graded=lambda: graded)


def never_asked() -> Verdict | None:
    raise AssertionError("grading was asked for")


@pytest.mark.parametrize("reason", [*REASONS, "ReasonOfAnOlderVersion"])
def test_barrier_is_armed_by_exactly_four_reasons(reason: str) -> None:
    armed = reason in {"Unknown", "PrerequisiteNotMet", "Disabled", "FeatureGateError"}
    assert is_barrier_active(earlier(reason)) is armed


def test_barrier_is_armed_before_the_first_reconcile() -> None:
    assert is_barrier_active(None)


def test_transition_time_stays_while_the_status_is_equal() -> None:
    assert stage(Status.SCALING, earlier("Creating"), NOON + MINUTE).last_transition_time == NOON


def test_transition_time_is_new_when_the_status_changes() -> None:
    assert stage(Status.CREATING, earlier("Healthy"), NOON + MINUTE).last_transition_time == NOON + MINUTE


def test_transition_time_is_in_whole_seconds() -> None:
    now = NOON + timedelta(microseconds=999_999)
    assert stage(Status.CREATING, None, now).last_transition_time == NOON


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Disabled", Status.CREATING),
        ("Disabled", Status.HEALTHY),
        ("Disabled", Status.SUSPENDED),
        ("Suspended", Status.HEALTHY),
        ("Suspending", Status.ERROR),
        ("PendingSuspension", Status.DISABLED),
        ("PrerequisiteNotMet", Status.CREATING),
        ("PrerequisiteNotMet", Status.ERROR),
        ("FeatureGateError", Status.CREATING),
        ("FeatureGateError", Status.PREREQUISITE_NOT_MET),
        ("Unknown", Status.PREREQUISITE_NOT_MET),
    ],
)
def test_leaving_rest_starts_a_fresh_transition_time(before: str, after: Status) -> None:
    assert stage(after, earlier(before), NOON + MINUTE).last_transition_time == NOON + MINUTE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Disabled", Status.DISABLED),
        ("PendingSuspension", Status.SUSPENDING),
        ("Suspending", Status.SUSPENDED),
        ("PrerequisiteNotMet", Status.PREREQUISITE_NOT_MET),
        ("Blocked", Status.CREATING),
        ("Error", Status.CREATING),
    ],
)
def test_other_changes_of_reason_keep_the_transition_time(before: str, after: Status) -> None:
    assert stage(after, earlier(before), NOON + MINUTE).last_transition_time == NOON


@pytest.mark.parametrize("before", ["Creating", "Updating", "Scaling"])
@pytest.mark.parametrize("now", [Status.CREATING, Status.UPDATING, Status.SCALING])
def test_progress_sticks_and_the_message_follows(before: str, now: Status) -> None:
    assert converging(now, earlier(before), NOON) == Verdict(Status(before), "aggregate")


@pytest.mark.parametrize(
    "now", [Status.FAILING, Status.BLOCKED, Status.TASK_RUNNING, Status.OPERATION_PENDING, Status.TASK_PENDING]
)
def test_other_states_show_at_once(now: Status) -> None:
    assert converging(now, earlier("Creating"), NOON) == Verdict(now, "aggregate")


@pytest.mark.parametrize("before", REASONS)
def test_ready_shows_at_once_from_any_state(before: str) -> None:
    ready = Verdict(Status.OPERATIONAL, "Component is healthy.")
    late = NOON + 10 * MINUTE
    assert with_grace(ready, earlier(before), period=MINUTE, now=late, graded=never_asked) == ready


def test_an_unknown_component_has_all_of_its_grace_before_it() -> None:
    unknown = Condition("FrontendReady", "False", "Unknown", "No components were aggregated.", 1, NOON)
    later = NOON + 10 * MINUTE
    assert converging(Status.CREATING, unknown, later, Verdict(Status.DOWN, "late")).status is Status.CREATING
    assert stage(Status.CREATING, unknown, later).last_transition_time == later


def test_a_reason_that_nobody_knows_is_no_rest() -> None:
    other = Condition("FrontendReady", "False", "ReasonOfAnOlderVersion", "before", 1, NOON)
    later = NOON + 10 * MINUTE
    assert converging(Status.CREATING, other, later, Verdict(Status.DOWN, "late")).status is Status.DOWN
    assert stage(Status.CREATING, other, later).last_transition_time == NOON


def test_grace_is_over_strictly_after_the_period() -> None:
    assert not is_expired(earlier("Creating"), MINUTE, NOON + MINUTE)
    assert is_expired(earlier("Creating"), MINUTE, NOON + MINUTE + timedelta(microseconds=1))


def test_a_period_of_zero_never_ends() -> None:
    assert not is_expired(earlier("Creating"), timedelta(0), NOON + timedelta(days=365))


@pytest.mark.parametrize(
    "reason", ["Creating", "Failing", "Blocked", "Error", "TaskRunning", "OperationPending", "Down"]
)
def test_whatever_is_not_ready_is_graded_when_the_grace_is_over(reason: str) -> None:
    down = Verdict(Status.DOWN, "Component is down: dead")
    assert converging(Status.CREATING, earlier(reason), NOON + 2 * MINUTE, graded=down) == down


@pytest.mark.parametrize(
    "reason", ["Healthy", "Operational", "Completed", "Disabled", "Suspended", "PrerequisiteNotMet"]
)
def test_grace_starts_afresh_after_being_ready_or_at_rest(reason: str) -> None:
    verdict = with_grace(
        Verdict(Status.CREATING, "m"), earlier(reason), period=MINUTE, now=NOON + 2 * MINUTE, graded=never_asked
    )
    assert verdict.status is Status.CREATING


def test_when_every_grace_handler_is_content_the_aggregate_shows_again() -> None:
    assert converging(Status.SCALING, earlier("Down"), NOON + 2 * MINUTE, graded=None).status is Status.SCALING


def test_the_wake_up_is_the_first_whole_second_after_the_deadline() -> None:
    now = NOON + timedelta(seconds=10.25)
    assert wake_up(earlier("Creating"), MINUTE, now) == NOON + timedelta(seconds=61)
    assert wake_up(earlier("Creating"), timedelta(seconds=60.5), now) == NOON + timedelta(seconds=61)


def test_at_the_wake_up_the_grace_is_over() -> None:
    moment = wake_up(earlier("Blocked"), MINUTE, NOON + timedelta(seconds=10.25))
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
    assert wake_up(earlier(reason), MINUTE, NOON) is None


@pytest.mark.parametrize("begun", [datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)])
def test_a_grace_that_ends_after_the_calendar_never_ends(begun: datetime) -> None:
    waiting = Condition("FrontendReady", "False", "Creating", "", 1, begun)
    now = datetime(2026, 1, 2, tzinfo=UTC)

    assert not is_expired(waiting, timedelta.max, now)
    assert wake_up(waiting, timedelta.max, now) is None
