"""Objects of any kind, judged by kstatus."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    ContentMutator,
    Convergence,
    ConvergingStatus,
    Custom,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named, build_widget, is_up

READY = (ConvergingStatus.OPERATIONAL, GraceStatus.HEALTHY)
LATE = (ConvergingStatus.OPERATION_PENDING, GraceStatus.DEGRADED)
NOT_WORKING = (ConvergingStatus.OPERATION_PENDING, GraceStatus.DOWN)
FAILED = (ConvergingStatus.OPERATION_FAILING, GraceStatus.DOWN)


def live(*conditions: Object, generation: int = 2, **status: Any) -> Object:
    """A Widget that has some conditions."""
    found: Object = {"status": {"conditions": list(conditions), **status}}
    return build_widget(**found) | {"metadata": {"name": "web", "namespace": "default", "generation": generation}}


def condition(condition_type: str, status: str, reason: str = "", message: str = "", **fields: Any) -> Object:
    return {"type": condition_type, "status": status, "reason": reason, "message": message, **fields}


DELETED = {"metadata": {"name": "web", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        pytest.param(build_widget(), READY, "Resource is current", id="nobody reports"),
        pytest.param(live(), READY, "Resource is current", id="no conditions"),
        pytest.param(live(observedGeneration=2), READY, "Resource is current", id="the latest spec is observed"),
        pytest.param(
            live(condition("Ready", "True"), observedGeneration=1),
            LATE,
            "Waiting for widget controller to observe latest spec",
            id="ready by an older spec",
        ),
        pytest.param(
            live(condition("Ready", "False"), observedGeneration=1),
            NOT_WORKING,
            "Waiting for widget controller to observe latest spec",
            id="not ready, by an older spec",
        ),
        pytest.param(live(condition("Ready", "True", "Up")), READY, "Resource is current", id="ready"),
        pytest.param(
            live(condition("Ready", "False", "Provisioning", "waiting for disks")),
            NOT_WORKING,
            "Ready is False (Provisioning): waiting for disks",
            id="not ready",
        ),
        pytest.param(live(condition("Ready", "Unknown")), LATE, "Ready is Unknown", id="it is not known"),
        pytest.param(live(condition("Ready", "yes")), LATE, "Ready is Unknown", id="a status that is none"),
        pytest.param(
            live(condition("Ready", "True", observedGeneration=1)),
            LATE,
            "Waiting for condition Ready to be of the latest spec",
            id="a condition of an older spec",
        ),
        pytest.param(
            live(condition("Ready", "True", observedGeneration=2)), READY, "Resource is current", id="of the latest"
        ),
        pytest.param(
            live(condition("Reconciling", "True", "Rollout", "2 of 3")),
            LATE,
            "Reconciling is True (Rollout): 2 of 3",
            id="reconciling",
        ),
        pytest.param(
            live(condition("Reconciling", "True"), condition("Ready", "False")),
            NOT_WORKING,
            "Reconciling is True",
            id="reconciling and not ready",
        ),
        pytest.param(
            live(condition("Reconciling", "False"), condition("Stalled", "False"), condition("Ready", "True")),
            READY,
            "Resource is current",
            id="nothing abnormal",
        ),
        pytest.param(
            live(condition("Reconciling", "True"), condition("Stalled", "True", "Quota", "no room")),
            FAILED,
            "Stalled is True (Quota): no room",
            id="stalled, which is worse than reconciling",
        ),
        pytest.param(
            live(condition("Stalled", "True", observedGeneration=1)),
            LATE,
            "Waiting for condition Stalled to be of the latest spec",
            id="stalled by an older spec",
        ),
        pytest.param(
            live(condition("Ready", "True")) | DELETED, NOT_WORKING, "Widget is being deleted", id="being deleted"
        ),
        pytest.param(live(condition("Synced", "False")), READY, "Resource is current", id="another condition"),
    ],
)
def test_health_and_grace(found: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str) -> None:
    custom = Custom(build_widget())
    assert custom.converging_status(found, Operation.NONE) == Convergence(expected[0], reason)
    assert custom.grace_status(found) == Grace(expected[1], reason)
    assert Custom.default_converging_status(found, Operation.NONE) == Convergence(expected[0], reason)
    assert Custom.default_grace_status(found) == Grace(expected[1], reason)


@pytest.mark.parametrize(
    ("found", "expected", "reason"),
    [
        pytest.param(build_widget(), LATE, "Waiting for condition Ready", id="nobody has reported yet"),
        pytest.param(live(condition("Ready", "True")), LATE, "Waiting for condition Synced", id="one is missing"),
        pytest.param(
            live(condition("Ready", "True"), condition("Synced", "False", "Denied")),
            NOT_WORKING,
            "Synced is False (Denied)",
            id="one is False",
        ),
        pytest.param(
            live(condition("Synced", "True"), condition("Ready", "True")), READY, "Resource is current", id="both"
        ),
    ],
)
def test_required_conditions_are_waited_for(
    found: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str
) -> None:
    custom = Custom(build_widget(), required_conditions=("Ready", "Synced"))
    assert custom.converging_status(found, Operation.CREATED) == Convergence(expected[0], reason)
    assert custom.grace_status(found) == Grace(expected[1], reason)


def test_one_required_condition_needs_no_tuple() -> None:
    custom = Custom(build_widget(), required_conditions="Available")
    found = custom.converging_status(live(condition("Ready", "True")), Operation.NONE)
    assert found == Convergence(ConvergingStatus.OPERATION_PENDING, "Waiting for condition Available")


@pytest.mark.parametrize("given", ["", ("Ready", ""), (None,)])
def test_a_required_condition_without_a_name_is_a_mistake(given: Any) -> None:
    (mistake,) = Custom(build_widget(), required_conditions=given).errors
    assert mistake.startswith("required_conditions: expected condition types such as 'Ready', found ")


def test_the_kind_may_have_no_namespaces() -> None:
    cluster_scoped = {"apiVersion": "demo.konverge.dev/v1", "kind": "Fleet", "metadata": {"name": "all"}}
    assert Custom(cluster_scoped, cluster_scoped=True).identity == "demo.konverge.dev/v1/Fleet/all"
    assert Custom(cluster_scoped, cluster_scoped=True).errors == ()
    assert Custom(cluster_scoped).errors == (
        "metadata.namespace: expected a namespace for a Fleet, found none; if Fleet is a cluster-scoped kind, pass "
        "cluster_scoped=True",
    )
    assert Custom(build_named()).errors != ()


def test_suspension_changes_nothing_unless_the_author_says_what() -> None:
    custom = Custom(build_widget(spec={"size": 1}))
    assert custom.render(suspended=True) == custom.render()
    assert custom.suspension_status({}).status is SuspensionStatus.SUSPENDED
    assert not custom.deletes_on_suspend

    def hibernate(m: ContentMutator) -> None:
        m.edit_content(lambda content: content.set_nested_field(True, "spec", "suspend"))

    asleep = Custom(
        build_widget(),
        suspend=hibernate,
        suspension_status=lambda live: Suspension(SuspensionStatus.SUSPENDING),
        delete_on_suspend=True,
    )
    assert asleep.render(suspended=True)["spec"] == {"suspend": True}
    assert asleep.suspension_status({}).status is SuspensionStatus.SUSPENDING
    assert asleep.deletes_on_suspend


def test_rules_of_the_author_s_own_replace_those_of_kstatus() -> None:
    custom = Custom(build_widget(), converging_status=is_up, grace_status=lambda live: Grace(GraceStatus.DEGRADED))
    assert custom.converging_status({"up": True}, Operation.NONE) == Convergence(ConvergingStatus.HEALTHY)
    assert custom.grace_status({"up": True}) == Grace(GraceStatus.DEGRADED)


def test_content_is_edited_by_path() -> None:
    grow = Mutation[ContentMutator](
        "grow", lambda m: m.edit_content(lambda content: content.set_nested_field(3, "spec", "size"))
    )
    assert Custom(build_widget(spec={"size": 1}), mutations=grow).render()["spec"] == {"size": 3}
