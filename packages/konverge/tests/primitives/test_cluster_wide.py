"""Health, grace and suspension of Namespace and CustomResourceDefinition."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    CustomResourceDefinition,
    Grace,
    GraceStatus,
    Namespace,
    Operation,
    SuspensionStatus,
)

READY = (ConvergingStatus.OPERATIONAL, GraceStatus.HEALTHY)
PENDING = (ConvergingStatus.OPERATION_PENDING, GraceStatus.DOWN)
FAILING_PARTLY = (ConvergingStatus.OPERATION_FAILING, GraceStatus.DEGRADED)
FAILING = (ConvergingStatus.OPERATION_FAILING, GraceStatus.DOWN)


def condition(condition_type: str, status: str, reason: str = "", message: str = "") -> Object:
    return {"type": condition_type, "status": status, "reason": reason, "message": message}


def build_deleting(kind: str, **status: object) -> Object:
    return {"kind": kind, "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": status}


LEFT = "Some resources are remaining: pods. has 1 resource instances"
ESTABLISHED, NAMES_ACCEPTED = condition("Established", "True"), condition("NamesAccepted", "True")


@pytest.mark.parametrize(
    ("live", "expected", "reason"),
    [
        pytest.param({"status": {"phase": "Active"}}, READY, "Namespace is active", id="active"),
        pytest.param({}, PENDING, "Waiting for namespace to become active", id="no phase"),
        pytest.param(
            build_deleting("Namespace", phase="Terminating"), PENDING, "Namespace is being deleted", id="being deleted"
        ),
        pytest.param(
            build_deleting(
                "Namespace",
                phase="Terminating",
                conditions=[
                    condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", LEFT),
                    condition("NamespaceDeletionContentFailure", "False", "ContentDeleted", "all is well"),
                ],
            ),
            PENDING,
            f"Namespace is being deleted: {LEFT}",
            id="with something in the way",
        ),
    ],
)
def test_a_namespace(live: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str) -> None:
    primitive = Namespace({"metadata": {"name": "web"}})
    assert primitive.converging_status(live, Operation.NONE) == Convergence(expected[0], reason)
    assert primitive.grace_status(live) == Grace(expected[1], reason)


def with_conditions(*conditions: Object) -> Object:
    return {"status": {"conditions": list(conditions)}}


@pytest.mark.parametrize(
    ("live", "expected", "reason"),
    [
        pytest.param({}, PENDING, "Waiting for condition NamesAccepted", id="not judged yet"),
        pytest.param(
            with_conditions(NAMES_ACCEPTED), PENDING, "Waiting for condition Established", id="names accepted"
        ),
        pytest.param(
            with_conditions(NAMES_ACCEPTED, condition("Established", "False", "Installing")),
            PENDING,
            "Established is False (Installing)",
            id="not established yet",
        ),
        pytest.param(
            with_conditions(NAMES_ACCEPTED, ESTABLISHED), READY, "CustomResourceDefinition is established", id="served"
        ),
        pytest.param(
            with_conditions(
                condition("NamesAccepted", "False", "KindConflict", '"Widget" is already in use'),
                condition("Established", "False", "NotAccepted"),
            ),
            FAILING,
            'NamesAccepted is False (KindConflict): "Widget" is already in use',
            id="a name is taken",
        ),
        pytest.param(
            with_conditions(condition("NamesAccepted", "False", "ShortNamesConflict"), ESTABLISHED),
            FAILING_PARTLY,
            "NamesAccepted is False (ShortNamesConflict)",
            id="a new name is taken",
        ),
        pytest.param(
            build_deleting("CustomResourceDefinition", conditions=[NAMES_ACCEPTED, ESTABLISHED]),
            PENDING,
            "CustomResourceDefinition is being deleted",
            id="being deleted",
        ),
    ],
)
def test_a_definition(live: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str) -> None:
    primitive = CustomResourceDefinition({"metadata": {"name": "widgets.demo.konverge.dev"}})
    assert primitive.converging_status(live, Operation.NONE) == Convergence(expected[0], reason)
    assert primitive.grace_status(live) == Grace(expected[1], reason)


@pytest.mark.parametrize("kind", [Namespace, CustomResourceDefinition])
def test_suspension_leaves_them_in_place(kind: type[Namespace] | type[CustomResourceDefinition]) -> None:
    primitive = kind({"metadata": {"name": "web"}, "spec": {"finalizers": ["kubernetes"]}})
    assert primitive.render(suspended=True) == primitive.render()
    assert primitive.suspension_status({}).status is SuspensionStatus.SUSPENDED
    assert not primitive.deletes_on_suspend


@pytest.mark.parametrize("kind", [Namespace, CustomResourceDefinition])
def test_they_have_no_namespace(kind: type[Namespace] | type[CustomResourceDefinition]) -> None:
    assert kind({"metadata": {"name": "web"}}).errors == ()
    assert kind({"metadata": {"name": "web", "namespace": "default"}}).errors == (
        f"metadata.namespace: expected none for a cluster-scoped {kind.__name__}, found 'default'",
    )


def test_a_definition_cannot_be_deleted_by_suspension() -> None:
    (mistake,) = CustomResourceDefinition({"metadata": {"name": "web"}}, delete_on_suspend=True).errors
    assert mistake.startswith(
        "delete_on_suspend: expected False, found True: the deletion of a CustomResourceDefinition"
    )
