"""Aggregation of resource statuses (specification, "Condition priority and aggregation")."""

from itertools import permutations

import pytest

from konverge._internal.component.aggregation import (
    AggregatedStatus,
    aggregate_convergence,
    aggregate_grades,
    aggregate_suspension,
)
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Suspension,
    SuspensionStatus,
)
from konverge.component import ComponentBuilder, aggregate, summarize_conditions
from konverge.kube import Condition

# The specification's table, highest first: reason, priority, condition status.
SPECIFICATION = [
    ("Error", 20, "False"),
    ("FeatureGateError", 20, "False"),
    ("Down", 19, "False"),
    ("Degraded", 18, "False"),
    ("PendingSuspension", 17, "True"),
    ("Suspending", 16, "True"),
    ("Suspended", 15, "True"),
    ("Disabled", 14, "True"),
    ("Failing", 13, "False"),
    ("OperationFailing", 12, "False"),
    ("TaskFailing", 11, "False"),
    ("Blocked", 10, "False"),
    ("PrerequisiteNotMet", 10, "False"),
    ("Scaling", 9, "False"),
    ("TaskRunning", 8, "False"),
    ("Updating", 7, "False"),
    ("Creating", 6, "False"),
    ("OperationPending", 5, "False"),
    ("TaskPending", 4, "False"),
    ("Healthy", 3, "True"),
    ("Operational", 2, "True"),
    ("Completed", 1, "True"),
    ("Unknown", 0, "Unknown"),
]


@pytest.mark.parametrize(("reason", "priority", "condition_status"), SPECIFICATION)
def test_status_has_the_priority_and_condition_status_of_the_specification(
    reason: str, priority: int, condition_status: str
) -> None:
    status = ConditionReason(reason)
    assert (status.priority, status.condition_status) == (priority, condition_status)


def test_the_table_holds_every_status_and_no_other() -> None:
    assert [status.value for status in ConditionReason] == [reason for reason, _, _ in SPECIFICATION]


def test_a_reason_that_nobody_knows_counts_as_unknown() -> None:
    assert ConditionReason.of_reason("SomebodyElses") is ConditionReason.UNKNOWN


def results(*pairs: tuple[str, str]) -> list[Convergence]:
    return [Convergence(ConvergingStatus(status), reason) for status, reason in pairs]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param([], AggregatedStatus(ConditionReason.HEALTHY, "Component is healthy."), id="nothing takes part"),
        pytest.param(
            [("Operational", "up"), ("Healthy", "ready"), ("Completed", "done")],
            AggregatedStatus(ConditionReason.HEALTHY, "Component is healthy."),
            id="all ready, the highest ready state shows",
        ),
        pytest.param(
            [("Completed", ""), ("Operational", "")],
            AggregatedStatus(ConditionReason.OPERATIONAL, "Component is healthy."),
            id="no workload among the ready",
        ),
        pytest.param(
            [("Completed", "")], AggregatedStatus(ConditionReason.COMPLETED, "Component is healthy."), id="only tasks"
        ),
        pytest.param(
            [("Creating", "a"), ("Healthy", "b")],
            AggregatedStatus(ConditionReason.CREATING, "a"),
            id="a ready one tells nothing",
        ),
        pytest.param(
            [("Creating", "a"), ("OperationPending", "b"), ("Creating", "c")],
            AggregatedStatus(ConditionReason.CREATING, "a; b; c"),
            id="the winner's severity class is told, not only its status",
        ),
        pytest.param(
            [("TaskRunning", "job"), ("Updating", "web"), ("Scaling", "db")],
            AggregatedStatus(ConditionReason.SCALING, "job; db"),
            id="scaling outranks a running task, and both are of one class",
        ),
        pytest.param(
            [("Failing", "crash"), ("Scaling", "x"), ("TaskFailing", "exit 1")],
            AggregatedStatus(ConditionReason.FAILING, "crash; exit 1"),
            id="failing wins over progress",
        ),
        pytest.param(
            [("Creating", "web"), ("Blocked", "waiting for endpoint")],
            AggregatedStatus(ConditionReason.BLOCKED, "waiting for endpoint"),
            id="blocked tells the guard's reason alone",
        ),
        pytest.param(
            [("Creating", ""), ("Creating", "b")],
            AggregatedStatus(ConditionReason.CREATING, "b"),
            id="empty reasons are left out",
        ),
    ],
)
def test_the_most_critical_state_wins(given: list[tuple[str, str]], expected: AggregatedStatus) -> None:
    assert aggregate_convergence(results(*given)) == expected


# What is equally severe is told together; what is blocked tells of itself alone.
CLASSES = [
    {"Creating", "OperationPending", "TaskPending"},
    {"Blocked"},
    {"Updating"},
    {"Scaling", "TaskRunning"},
    {"Failing", "OperationFailing", "TaskFailing"},
]
PRIORITIES = {reason: priority for reason, priority, _ in SPECIFICATION}


@pytest.mark.parametrize(
    ("first", "second"), [*permutations(sorted({status for of_class in CLASSES for status in of_class}), 2)]
)
def test_the_reasons_of_a_class_are_told_together(first: str, second: str) -> None:
    winner = max(first, second, key=PRIORITIES.__getitem__)
    (together,) = (statuses for statuses in CLASSES if winner in statuses)

    verdict = aggregate_convergence(results((first, first.lower()), ("Healthy", "fine"), (second, second.lower())))

    assert verdict.status == winner
    assert verdict.message == "; ".join(status.lower() for status in (first, second) if status in together)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            [],
            AggregatedStatus(
                ConditionReason.DOWN, "Component is down: Component failed to converge within grace period."
            ),
        ),
        ([("Healthy", "fine")], None),
        (
            [("Degraded", "1/2"), ("Healthy", "fine")],
            AggregatedStatus(ConditionReason.DEGRADED, "Component is degraded: 1/2"),
        ),
        (
            [("Degraded", "1/2"), ("Down", "none"), ("Down", "dead")],
            AggregatedStatus(ConditionReason.DOWN, "Component is down: none; dead"),
        ),
    ],
)
def test_the_worst_grade_wins_after_the_grace(given: list[tuple[str, str]], expected: AggregatedStatus | None) -> None:
    assert aggregate_grades([Grace(GraceStatus(status), reason) for status, reason in given]) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], AggregatedStatus(ConditionReason.SUSPENDED, "All resources are suspended.")),
        (
            [("Suspended", "scaled to zero")],
            AggregatedStatus(ConditionReason.SUSPENDED, "All resources are suspended."),
        ),
        (
            [("Suspended", "a"), ("Suspending", "b"), ("Suspending", "c")],
            AggregatedStatus(ConditionReason.SUSPENDING, "b; c"),
        ),
        ([("Suspending", "b"), ("PendingSuspension", "c")], AggregatedStatus(ConditionReason.PENDING_SUSPENSION, "c")),
    ],
)
def test_the_component_is_as_suspended_as_its_least_suspended_resource(
    given: list[tuple[str, str]], expected: AggregatedStatus
) -> None:
    assert aggregate_suspension([Suspension(SuspensionStatus(status), reason) for status, reason in given]) == expected


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        pytest.param([], ("False", "Unknown", "No components were aggregated."), id="nothing to sum up"),
        pytest.param([("True", "Healthy", "fine")], ("True", "Healthy", "The component a is healthy."), id="one"),
        pytest.param(
            [("True", "Completed", "done"), ("True", "Operational", "up"), ("True", "Healthy", "fine")],
            ("True", "Healthy", "All 3 components are healthy."),
            id="all True, the highest of all",
        ),
        pytest.param(
            [("True", "Healthy", "fine"), ("True", "Disabled", "Component is disabled.")],
            ("True", "Healthy", "1 component is healthy; 1 is disabled (b)."),
            id="what is disabled does not speak for the owner",
        ),
        pytest.param(
            [("True", "Disabled", "off"), ("True", "Disabled", "off")],
            ("True", "Disabled", "All 2 components are disabled."),
            id="nothing else than disabled",
        ),
        pytest.param(
            [("True", "Completed", "done"), ("True", "Suspended", "asleep"), ("True", "Healthy", "fine")],
            ("True", "Suspended", "2 components are healthy; 1 is suspended (b)."),
            id="what is suspended shows",
        ),
        pytest.param(
            [("True", "Suspending", "soon"), ("True", "Disabled", "off"), ("True", "Disabled", "off")],
            ("True", "Suspending", "1 component is being suspended (a); 2 are disabled (b, c)."),
            id="nothing is healthy",
        ),
        pytest.param(
            [("False", "Creating", "new"), ("False", "Failing", "crash"), ("False", "Blocked", "waits.")],
            (
                "False",
                "Failing",
                "3 of 3 components are not ready: b (Failing: crash), c (Blocked: waits), a (Creating: new).",
            ),
            id="the most critical first",
        ),
        pytest.param(
            [("True", "Suspended", "asleep"), ("False", "Creating", "new")],
            ("False", "Creating", "1 of 2 components is not ready: b (Creating: new)."),
            id="what is True is not asked where another is not",
        ),
        pytest.param(
            [("False", "Blocked", "waits"), ("False", "PrerequisiteNotMet", "waits too")],
            (
                "False",
                "Blocked",
                "2 of 2 components are not ready: a (Blocked: waits), b (PrerequisiteNotMet: waits too).",
            ),
            id="of equals the first",
        ),
        pytest.param(
            [("False", "SomebodyElses", "odd"), ("False", "TaskPending", "soon")],
            (
                "False",
                "TaskPending",
                "2 of 2 components are not ready: b (TaskPending: soon), a (SomebodyElses: odd).",
            ),
            id="a reason that nobody knows comes last",
        ),
        pytest.param(
            [("False", "Creating", "")],
            ("False", "Creating", "The component a (Creating) is not ready."),
            id="no message, the reason alone",
        ),
        pytest.param(
            [("Unknown", "Unknown", "who knows")],
            ("False", "Unknown", "The component a (Unknown: who knows) is not ready."),
            id="not known is not True",
        ),
    ],
)
def test_the_owners_condition_is_that_of_its_most_critical_component(
    reported: list[tuple[str, str, str]], expected: tuple[str, str, str]
) -> None:
    names = "abc"[: len(reported)]
    components = [ComponentBuilder(name, condition_type=f"{name.upper()}Ready").build() for name in names]
    conditions = [
        {"type": f"{name.upper()}Ready", "status": status, "reason": reason, "message": message}
        for name, (status, reason, message) in zip(names, reported, strict=True)
    ]
    owner = {"metadata": {"generation": 3}, "status": {"conditions": conditions}}

    found = aggregate("Ready", owner, components)

    assert (found.status, found.reason, found.message) == expected
    assert found.observed_generation == 3
    assert owner["status"] == {"conditions": conditions}, "nothing is written"


def test_the_message_about_many_components_is_short() -> None:
    late = [(f"c{number}", Condition("X", "False", "Creating", "y" * 900)) for number in range(40)]
    off = [(f"c{number}", Condition("X", "True", "Disabled", "")) for number in range(40)]

    not_ready = summarize_conditions("Ready", late, 1).message
    idle = summarize_conditions("Ready", [("web", Condition("X", "True", "Healthy", "")), *off], 1).message

    assert not_ready.startswith("40 of 40 components are not ready: c0 (Creating: yyy")
    assert not_ready.endswith(", and 35 more.")
    assert len(not_ready) < 3000
    assert idle == "1 component is healthy; 40 are disabled (c0, c1, c2, c3, c4, and 35 more)."
