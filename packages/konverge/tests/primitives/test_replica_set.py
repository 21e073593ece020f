"""A ReplicaSet's health, grace and suspension, by the situations that a cluster shows."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    ReplicaSet,
    ReplicaSetMutator,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

NONE = Operation.NONE
READY = "All replicas are ready"
UNOBSERVED = "Waiting for replicaset controller to observe latest spec"
QUOTA = "FailedCreate: exceeded quota: pods"


def live(spec: Object, status: Object, *, generation: int = 1) -> Object:
    """A ReplicaSet as the server has it; its controller has observed generation 1."""
    return {"metadata": {"generation": generation}, "spec": spec, "status": {"observedGeneration": 1, **status}}


NOT_OBSERVED = live({"replicas": 3}, {"readyReplicas": 3, "replicas": 3}, generation=2)
STARTING = live({"replicas": 3}, {"readyReplicas": 1, "replicas": 3})
NONE_READY = live({"replicas": 3}, {"replicas": 3})
QUOTA_EXCEEDED = live(
    {"replicas": 3},
    {
        "readyReplicas": 1,
        "replicas": 1,
        "conditions": [
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: pods"}
        ],
    },
)
SURPLUS_TERMINATING = live({"replicas": 1}, {"readyReplicas": 1, "replicas": 3})
ZERO_REPLICAS = live({"replicas": 0}, {"replicas": 0})
REPLICAS_UNSET = live({}, {"readyReplicas": 1, "replicas": 1})
ALL_READY = live({"replicas": 3}, {"readyReplicas": 3, "replicas": 3})


@pytest.mark.parametrize(
    ("found", "operation", "status", "reason"),
    [
        pytest.param(
            NOT_OBSERVED, Operation.UPDATED, ConvergingStatus.UPDATING, UNOBSERVED, id="updated, not observed"
        ),
        pytest.param(
            STARTING, Operation.CREATED, ConvergingStatus.CREATING, "Waiting for replicas: 1/3 ready", id="starting"
        ),
        pytest.param(STARTING, NONE, ConvergingStatus.SCALING, "Waiting for replicas: 1/3 ready", id="scaling"),
        pytest.param(
            QUOTA_EXCEEDED,
            NONE,
            ConvergingStatus.SCALING,
            f"Waiting for replicas: 1/3 ready ({QUOTA})",
            id="quota exceeded",
        ),
        pytest.param(
            SURPLUS_TERMINATING,
            NONE,
            ConvergingStatus.UPDATING,
            "Waiting for 2 surplus replicas to terminate",
            id="surplus terminating",
        ),
        pytest.param(ZERO_REPLICAS, NONE, ConvergingStatus.HEALTHY, READY, id="zero replicas"),
        pytest.param(REPLICAS_UNSET, NONE, ConvergingStatus.HEALTHY, READY, id="replicas unset is one"),
        pytest.param(ALL_READY, NONE, ConvergingStatus.HEALTHY, READY, id="ready"),
        pytest.param({}, NONE, ConvergingStatus.SCALING, "Waiting for replicas: 0/1 ready", id="an empty object"),
    ],
)
def test_health(found: Object, operation: Operation, status: ConvergingStatus, reason: str) -> None:
    assert ReplicaSet(build_named()).converging_status(found, operation) == Convergence(status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        pytest.param(NONE_READY, GraceStatus.DOWN, "No replicas are ready", id="none ready"),
        pytest.param(NOT_OBSERVED, GraceStatus.DEGRADED, UNOBSERVED, id="not observed"),
        pytest.param(STARTING, GraceStatus.DEGRADED, "ReplicaSet partially available", id="some ready"),
        pytest.param(
            QUOTA_EXCEEDED, GraceStatus.DEGRADED, f"ReplicaSet partially available ({QUOTA})", id="quota exceeded"
        ),
        pytest.param(
            SURPLUS_TERMINATING,
            GraceStatus.DEGRADED,
            "Waiting for 2 surplus replicas to terminate",
            id="surplus terminating",
        ),
        pytest.param(ALL_READY, GraceStatus.HEALTHY, READY, id="ready"),
    ],
)
def test_grace(found: Object, status: GraceStatus, reason: str) -> None:
    assert ReplicaSet(build_named()).grace_status(found) == Grace(status, reason)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            live({"replicas": 0}, {"replicas": 1}),
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for replicas to scale down, 1 replicas still running."),
            id="scaling down",
        ),
        pytest.param(
            ZERO_REPLICAS, Suspension(SuspensionStatus.SUSPENDED, "ReplicaSet scaled to zero"), id="scaled down"
        ),
    ],
)
def test_suspension(found: Object, expected: Suspension) -> None:
    assert ReplicaSet(build_named()).suspension_status(found) == expected


def test_suspension_scales_to_zero() -> None:
    web = ReplicaSet(build_named(spec={"replicas": 3}))
    assert web.render(suspended=True)["spec"] == {"replicas": 0}
    assert not web.deletes_on_suspend


def test_the_spec_has_its_own_edits() -> None:
    def shape(m: ReplicaSetMutator) -> None:
        m.ensure_replicas(2)
        m.edit_replica_set_spec(lambda spec: spec.set(minReadySeconds=5))
        m.edit_pod_template_metadata(lambda metadata: metadata.ensure_label("app", "web"))

    assert ReplicaSet(build_named(), mutations=Mutation("shape", shape)).render()["spec"] == {
        "replicas": 2,
        "minReadySeconds": 5,
        "template": {"metadata": {"labels": {"app": "web"}}},
    }
