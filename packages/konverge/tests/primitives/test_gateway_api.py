"""Health and grace of the Gateway API's kinds."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    ContentMutator,
    Convergence,
    ConvergingStatus,
    Gateway,
    Grace,
    GraceStatus,
    HTTPRoute,
    Operation,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

READY = (ConvergingStatus.OPERATIONAL, GraceStatus.HEALTHY)
PENDING_PARTLY = (ConvergingStatus.OPERATION_PENDING, GraceStatus.DEGRADED)
PENDING = (ConvergingStatus.OPERATION_PENDING, GraceStatus.DOWN)
FAILING_PARTLY = (ConvergingStatus.OPERATION_FAILING, GraceStatus.DEGRADED)
FAILING = (ConvergingStatus.OPERATION_FAILING, GraceStatus.DOWN)


def condition(condition_type: str, status: str = "True", reason: str = "", message: str = "", seen: int = 2) -> Object:
    return {
        "type": condition_type,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": seen,
    }


ACCEPTED, PROGRAMMED, RESOLVED = condition("Accepted"), condition("Programmed"), condition("ResolvedRefs")


def gateway(*conditions: Object, **listeners: list[Object]) -> Object:
    """A Gateway of generation 2 with what was reported on it and its listeners."""
    reported = [{"name": name, "conditions": found} for name, found in listeners.items()]
    return {
        "kind": "Gateway",
        "metadata": {"name": "web", "namespace": "default", "generation": 2},
        "status": {"conditions": list(conditions), "listeners": reported},
    }


DELETED = {"metadata": {"name": "web", "namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("live", "expected", "reason"),
    [
        pytest.param(
            {},
            PENDING,
            "Waiting for condition Accepted; Waiting for condition Programmed",
            id="no controller has it",
        ),
        pytest.param(
            gateway(condition("Accepted", "Unknown", "Pending", "Waiting for controller"), PROGRAMMED),
            PENDING_PARTLY,
            "Accepted is Unknown (Pending): Waiting for controller",
            id="the default of its definition",
        ),
        pytest.param(gateway(ACCEPTED, PROGRAMMED), READY, "Gateway is programmed", id="programmed"),
        pytest.param(
            gateway(condition("Accepted", "False", "Invalid", "no such class"), condition("Programmed", "False")),
            FAILING,
            "Accepted is False (Invalid): no such class; Programmed is False",
            id="refused",
        ),
        pytest.param(
            gateway(ACCEPTED, condition("Programmed", "False", "AddressNotAssigned")),
            PENDING,
            "Programmed is False (AddressNotAssigned)",
            id="waiting for an address",
        ),
        pytest.param(
            gateway(condition("Accepted", seen=1), condition("Programmed", seen=1)),
            PENDING_PARTLY,
            "Waiting for condition Accepted to be of the latest spec; "
            "Waiting for condition Programmed to be of the latest spec",
            id="programmed by an older spec",
        ),
        pytest.param(
            gateway(ACCEPTED, PROGRAMMED, http=[ACCEPTED, PROGRAMMED, RESOLVED, condition("Conflicted", "False")]),
            READY,
            "Gateway is programmed",
            id="with a listener",
        ),
        pytest.param(
            gateway(
                ACCEPTED,
                PROGRAMMED,
                http=[ACCEPTED, PROGRAMMED, RESOLVED],
                https=[ACCEPTED, PROGRAMMED, condition("ResolvedRefs", "False", "InvalidCertificateRef")],
            ),
            FAILING_PARTLY,
            "listener https: ResolvedRefs is False (InvalidCertificateRef)",
            id="a listener without its certificate",
        ),
        pytest.param(
            gateway(ACCEPTED, PROGRAMMED, http=[condition("Conflicted", "True", "HostnameConflict")]),
            FAILING_PARTLY,
            "listener http: Conflicted is True (HostnameConflict)",
            id="listeners in conflict",
        ),
        pytest.param(
            gateway(ACCEPTED, PROGRAMMED, http=[condition("Programmed", "False", "Pending")]),
            PENDING_PARTLY,
            "listener http: Programmed is False (Pending)",
            id="a listener that is late",
        ),
        pytest.param(gateway(ACCEPTED, PROGRAMMED) | DELETED, PENDING, "Gateway is being deleted", id="being deleted"),
    ],
)
def test_a_gateway(live: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str) -> None:
    primitive = Gateway(build_named())
    assert primitive.converging_status(live, Operation.NONE) == Convergence(expected[0], reason)
    assert primitive.grace_status(live) == Grace(expected[1], reason)


def report(parent: Object, *conditions: Object) -> Object:
    return {"parentRef": parent, "controllerName": "example.com/one", "conditions": list(conditions)}


def route(*parents: Object, reports: list[Object] | None = None) -> Object:
    """An HTTPRoute of generation 2 that names some parents."""
    return {
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "default", "generation": 2},
        "spec": {"parentRefs": list(parents)},
        "status": {"parents": reports or []},
    }


WEB: dict[str, Any] = {"name": "web"}
WEB_IN_FULL = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "default", "name": "web"}
MESH = {"group": "", "kind": "Service", "name": "pages"}


@pytest.mark.parametrize(
    ("live", "expected", "reason"),
    [
        pytest.param(route(), PENDING, "Waiting for a parent: spec.parentRefs is empty", id="no parent"),
        pytest.param(route(WEB), PENDING, "Waiting for Gateway web to report on the route", id="no report yet"),
        pytest.param(
            route(WEB, reports=[report(WEB, ACCEPTED, RESOLVED)]), READY, "HTTPRoute is accepted", id="accepted"
        ),
        pytest.param(
            route(WEB, reports=[report(WEB_IN_FULL, ACCEPTED, RESOLVED)]),
            READY,
            "HTTPRoute is accepted",
            id="the reference has defaults",
        ),
        pytest.param(
            route(WEB, reports=[report(WEB, condition("Accepted", "False", "NotAllowedByListeners", "no"), RESOLVED)]),
            FAILING,
            "Gateway web: Accepted is False (NotAllowedByListeners): no",
            id="refused",
        ),
        pytest.param(
            route(WEB, reports=[report(WEB, condition("Accepted", "False", "Pending"), RESOLVED)]),
            PENDING,
            "Gateway web: Accepted is False (Pending)",
            id="not decided yet",
        ),
        pytest.param(
            route(WEB, reports=[report(WEB, ACCEPTED, condition("ResolvedRefs", "False", "BackendNotFound"))]),
            FAILING_PARTLY,
            "Gateway web: ResolvedRefs is False (BackendNotFound)",
            id="without its backend",
        ),
        pytest.param(
            route(WEB, reports=[report(WEB, condition("Accepted", seen=1), RESOLVED)]),
            PENDING_PARTLY,
            "Gateway web: Waiting for condition Accepted to be of the latest spec",
            id="accepted by an older spec",
        ),
        pytest.param(
            route(WEB, MESH, reports=[report(WEB, ACCEPTED, RESOLVED)]),
            PENDING_PARTLY,
            "Waiting for Service pages to report on the route",
            id="one of two parents",
        ),
        pytest.param(
            route(
                {**WEB, "sectionName": "https"}, reports=[report({**WEB, "sectionName": "http"}, ACCEPTED, RESOLVED)]
            ),
            PENDING,
            "Waiting for Gateway web to report on the route",
            id="another section of the gateway",
        ),
        pytest.param(
            route(
                WEB,
                reports=[report({"name": "old"}, condition("Accepted", "False")), report(WEB, ACCEPTED, RESOLVED)],
            ),
            READY,
            "HTTPRoute is accepted",
            id="a report that a gone controller left",
        ),
        pytest.param(
            route(
                WEB, reports=[report(WEB, ACCEPTED, RESOLVED), report(WEB, condition("Accepted", "False"), RESOLVED)]
            ),
            FAILING_PARTLY,
            "Gateway web: Accepted is False",
            id="two controllers, one of which refuses",
        ),
        pytest.param(
            route(WEB, reports=[report(WEB, ACCEPTED, RESOLVED)]) | DELETED,
            PENDING,
            "HTTPRoute is being deleted",
            id="being deleted",
        ),
    ],
)
def test_a_route(live: Object, expected: tuple[ConvergingStatus, GraceStatus], reason: str) -> None:
    primitive = HTTPRoute(build_named())
    assert primitive.converging_status(live, Operation.NONE) == Convergence(expected[0], reason)
    assert primitive.grace_status(live) == Grace(expected[1], reason)


@pytest.mark.parametrize("kind", [Gateway, HTTPRoute])
def test_suspension_leaves_them_in_place(kind: type[Gateway] | type[HTTPRoute]) -> None:
    primitive = kind(build_named(spec={"listeners": []}))
    assert primitive.render(suspended=True) == primitive.render()
    assert primitive.suspension_status({}).status is SuspensionStatus.SUSPENDED
    assert not primitive.deletes_on_suspend


@pytest.mark.parametrize("kind", [Gateway, HTTPRoute])
def test_content_is_edited_by_path(kind: type[Gateway] | type[HTTPRoute]) -> None:
    edit = Mutation[ContentMutator](
        "class", lambda m: m.edit_content(lambda content: content.set_nested_field("edge", "spec", "gatewayClassName"))
    )
    desired = kind(build_named(), mutations=edit).render()
    assert desired["apiVersion"] == "gateway.networking.k8s.io/v1"
    assert desired["spec"] == {"gatewayClassName": "edge"}
