"""A Service's health and grace, by its type."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Service,
    ServiceMutator,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

AWAITING = "Awaiting load balancer IP/hostname assignment"


def of_type(service_type: str, **status: Any) -> Object:
    return {"spec": {"type": service_type}, "status": status}


def balancer(*ingress: Object) -> Object:
    return of_type("LoadBalancer", loadBalancer={"ingress": list(ingress)})


@pytest.mark.parametrize(
    ("live", "health", "grace"),
    [
        pytest.param(
            of_type("ClusterIP"),
            Convergence(ConvergingStatus.OPERATIONAL, "Service is operational"),
            GraceStatus.HEALTHY,
            id="cluster IP",
        ),
        pytest.param(
            of_type("NodePort"),
            Convergence(ConvergingStatus.OPERATIONAL, "Service is operational"),
            GraceStatus.HEALTHY,
            id="node port",
        ),
        pytest.param(
            of_type("ExternalName"),
            Convergence(ConvergingStatus.OPERATIONAL, "Service is operational"),
            GraceStatus.HEALTHY,
            id="external name",
        ),
        pytest.param(
            of_type("LoadBalancer"),
            Convergence(ConvergingStatus.OPERATION_PENDING, AWAITING),
            GraceStatus.DEGRADED,
            id="load balancer, nothing assigned",
        ),
        pytest.param(
            balancer({"ip": "", "ports": []}),
            Convergence(ConvergingStatus.OPERATION_PENDING, AWAITING),
            GraceStatus.DEGRADED,
            id="load balancer, an entry without address",
        ),
        pytest.param(
            balancer({"ip": "192.0.2.1"}),
            Convergence(ConvergingStatus.OPERATIONAL, "Load balancer IP/hostname assigned"),
            GraceStatus.HEALTHY,
            id="load balancer with an IP",
        ),
        pytest.param(
            balancer({}, {"hostname": "lb.example"}),
            Convergence(ConvergingStatus.OPERATIONAL, "Load balancer IP/hostname assigned"),
            GraceStatus.HEALTHY,
            id="load balancer with a hostname",
        ),
    ],
)
def test_health_and_grace(live: Object, health: Convergence, grace: GraceStatus) -> None:
    service = Service(build_named())
    graded = service.grace_status(live)
    assert service.converging_status(live, Operation.NONE) == health
    assert graded is not None
    assert graded.status is grace


def test_a_late_load_balancer_says_what_it_waits_for() -> None:
    assert Service(build_named()).grace_status(balancer()) == Grace(GraceStatus.DEGRADED, AWAITING)


def test_suspension_leaves_a_service_in_place() -> None:
    service = Service(build_named(spec={"ports": [{"port": 80}]}))
    assert service.render(suspended=True) == service.render()
    assert service.suspension_status(of_type("LoadBalancer")).status is SuspensionStatus.SUSPENDED


def test_the_spec_has_its_own_edits() -> None:
    expose = Mutation[ServiceMutator]("expose", lambda m: m.edit_service_spec(lambda spec: spec.set(type="NodePort")))
    assert Service(build_named(), mutations=expose).render()["spec"] == {"type": "NodePort"}
