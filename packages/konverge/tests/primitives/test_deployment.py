"""A Deployment's health, grace and suspension, by the situations that a cluster shows."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Deployment,
    DeploymentMutator,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

CREATED, UPDATED, NONE = Operation.CREATED, Operation.UPDATED, Operation.NONE
CREATING, UPDATING, SCALING, HEALTHY = (
    ConvergingStatus.CREATING,
    ConvergingStatus.UPDATING,
    ConvergingStatus.SCALING,
    ConvergingStatus.HEALTHY,
)
UNOBSERVED = "Waiting for deployment controller to observe latest spec"
READY = "All replicas are ready"


def live(spec: Object, status: Object, *, generation: int = 1) -> Object:
    """A Deployment as the server has it; its controller has observed the spec unless `status` says otherwise."""
    return {
        "metadata": {"generation": generation},
        "spec": spec,
        "status": {"observedGeneration": generation, **status},
    }


def counts(ready: int, updated: int, total: int) -> Object:
    return {"readyReplicas": ready, "updatedReplicas": updated, "replicas": total}


CREATED_NOT_OBSERVED = live({"replicas": 3}, {"observedGeneration": 0})
UPDATED_NOT_OBSERVED = live({"replicas": 3}, {**counts(3, 3, 3), "observedGeneration": 1}, generation=2)
STARTING = live({"replicas": 3}, counts(1, 3, 3))
NONE_READY = live({"replicas": 3}, {"updatedReplicas": 3, "replicas": 3})
SCALING_DOWN = live({"replicas": 1}, counts(3, 3, 3))
ROLLOUT_UNFINISHED = live({"replicas": 3}, counts(3, 1, 4))
OLD_REPLICAS_TERMINATING = live({"replicas": 3}, counts(3, 3, 5))
PAUSED = live({"replicas": 3, "paused": True}, counts(3, 0, 3))
ZERO_REPLICAS = live({"replicas": 0}, {})
REPLICAS_UNSET = live({}, counts(1, 1, 1))
QUOTA = "FailedCreate: exceeded quota: pods"
DEADLINE = 'ProgressDeadlineExceeded: ReplicaSet "web-1" has timed out progressing.'


def condition(condition_type: str, status: str, told: str) -> Object:
    """A condition with the reason and the message of ``<reason>: <message>``."""
    reason, message = told.split(": ", 1)
    return {"type": condition_type, "status": status, "reason": reason, "message": message}


QUOTA_EXCEEDED = live(
    {"replicas": 3},
    {
        **counts(1, 1, 1),
        "conditions": [
            condition("Progressing", "True", "NewReplicaSetCreated: Created new replica set"),
            condition("ReplicaFailure", "True", QUOTA),
        ],
    },
)
DEADLINE_OVER = live({"replicas": 3}, {**counts(3, 1, 4), "conditions": [condition("Progressing", "False", DEADLINE)]})
QUOTA_AND_DEADLINE = live(
    {"replicas": 3},
    {"conditions": [condition("Progressing", "False", DEADLINE), condition("ReplicaFailure", "True", QUOTA)]},
)
FAILED_BEFORE_THE_UPDATE = live({"replicas": 3}, {**QUOTA_EXCEEDED["status"], "observedGeneration": 1}, generation=2)
READY_AGAIN = live({"replicas": 1}, {**counts(1, 1, 1), "conditions": [condition("ReplicaFailure", "True", QUOTA)]})
ALL_READY = live({"replicas": 3}, counts(3, 3, 3))


@pytest.mark.parametrize(
    ("found", "operation", "status", "reason"),
    [
        pytest.param(CREATED_NOT_OBSERVED, CREATED, CREATING, UNOBSERVED, id="created, not observed"),
        pytest.param(CREATED_NOT_OBSERVED, NONE, UPDATING, UNOBSERVED, id="created in an earlier pass, not observed"),
        pytest.param(UPDATED_NOT_OBSERVED, UPDATED, UPDATING, UNOBSERVED, id="updated, status of the old spec"),
        pytest.param(STARTING, CREATED, CREATING, "Waiting for replicas: 1/3 ready", id="starting after creation"),
        pytest.param(STARTING, UPDATED, UPDATING, "Waiting for replicas: 1/3 ready", id="starting after an update"),
        pytest.param(STARTING, NONE, SCALING, "Waiting for replicas: 1/3 ready", id="scaling"),
        pytest.param(SCALING_DOWN, NONE, SCALING, "Waiting for replicas: 3/1 ready", id="scaling down"),
        pytest.param(
            ROLLOUT_UNFINISHED, CREATED, CREATING, "Waiting for rollout: 1/3 replicas updated", id="first rollout"
        ),
        pytest.param(
            ROLLOUT_UNFINISHED, NONE, UPDATING, "Waiting for rollout: 1/3 replicas updated", id="rollout unfinished"
        ),
        pytest.param(
            OLD_REPLICAS_TERMINATING,
            NONE,
            UPDATING,
            "Waiting for rollout: 2 old replicas pending termination",
            id="old replicas terminating",
        ),
        pytest.param(PAUSED, NONE, HEALTHY, READY, id="paused"),
        pytest.param(ZERO_REPLICAS, NONE, HEALTHY, READY, id="zero replicas"),
        pytest.param(REPLICAS_UNSET, NONE, HEALTHY, READY, id="replicas unset is one"),
        pytest.param(ALL_READY, CREATED, HEALTHY, READY, id="ready at once"),
        pytest.param(ALL_READY, NONE, HEALTHY, READY, id="ready"),
        pytest.param(QUOTA_EXCEEDED, NONE, SCALING, f"Waiting for replicas: 1/3 ready ({QUOTA})", id="quota exceeded"),
        pytest.param(
            DEADLINE_OVER,
            NONE,
            UPDATING,
            f"Waiting for rollout: 1/3 replicas updated ({DEADLINE})",
            id="deadline over",
        ),
        pytest.param(
            QUOTA_AND_DEADLINE,
            NONE,
            SCALING,
            f"Waiting for replicas: 0/3 ready ({QUOTA}; {DEADLINE})",
            id="deadline over because of a quota",
        ),
        pytest.param(FAILED_BEFORE_THE_UPDATE, UPDATED, UPDATING, UNOBSERVED, id="failed before the update"),
        pytest.param(READY_AGAIN, NONE, HEALTHY, READY, id="ready all the same"),
        pytest.param({}, NONE, SCALING, "Waiting for replicas: 0/1 ready", id="an empty object"),
        pytest.param(
            live({}, {**counts(1, 1, 1), "readyReplicas": True}),
            NONE,
            SCALING,
            "Waiting for replicas: 0/1 ready",
            id="a boolean is no number",
        ),
    ],
)
def test_health(found: Object, operation: Operation, status: ConvergingStatus, reason: str) -> None:
    assert Deployment(build_named()).converging_status(found, operation) == Convergence(status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        pytest.param(NONE_READY, GraceStatus.DOWN, "No replicas are ready", id="none ready"),
        pytest.param(CREATED_NOT_OBSERVED, GraceStatus.DOWN, "No replicas are ready", id="created, not observed"),
        pytest.param(STARTING, GraceStatus.DEGRADED, "Deployment partially available", id="some ready"),
        pytest.param(SCALING_DOWN, GraceStatus.DEGRADED, "Deployment partially available", id="too many ready"),
        pytest.param(UPDATED_NOT_OBSERVED, GraceStatus.DEGRADED, UNOBSERVED, id="not observed"),
        pytest.param(
            ROLLOUT_UNFINISHED,
            GraceStatus.DEGRADED,
            "Waiting for rollout: 1/3 replicas updated",
            id="rollout unfinished",
        ),
        pytest.param(
            QUOTA_EXCEEDED, GraceStatus.DEGRADED, f"Deployment partially available ({QUOTA})", id="quota exceeded"
        ),
        pytest.param(
            DEADLINE_OVER,
            GraceStatus.DEGRADED,
            f"Waiting for rollout: 1/3 replicas updated ({DEADLINE})",
            id="deadline over",
        ),
        pytest.param(
            QUOTA_AND_DEADLINE,
            GraceStatus.DOWN,
            f"No replicas are ready ({QUOTA}; {DEADLINE})",
            id="deadline over because of a quota",
        ),
        pytest.param(PAUSED, GraceStatus.HEALTHY, READY, id="paused"),
        pytest.param(ZERO_REPLICAS, GraceStatus.HEALTHY, READY, id="zero replicas"),
        pytest.param(ALL_READY, GraceStatus.HEALTHY, READY, id="ready"),
    ],
)
def test_grace(found: Object, status: GraceStatus, reason: str) -> None:
    assert Deployment(build_named()).grace_status(found) == Grace(status, reason)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            live({"replicas": 0}, {"replicas": 2}),
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for replicas to scale down, 2 replicas still running."),
            id="scaling down",
        ),
        pytest.param(
            live({"replicas": 0}, {"replicas": 0}),
            Suspension(SuspensionStatus.SUSPENDED, "Deployment scaled to zero"),
            id="scaled down",
        ),
        pytest.param(
            live({"replicas": 0}, {}),
            Suspension(SuspensionStatus.SUSPENDED, "Deployment scaled to zero"),
            id="created suspended",
        ),
        pytest.param(
            UPDATED_NOT_OBSERVED,
            Suspension(SuspensionStatus.SUSPENDING, UNOBSERVED),
            id="its controller has not seen it yet",
        ),
    ],
)
def test_suspension(found: Object, expected: Suspension) -> None:
    assert Deployment(build_named()).suspension_status(found) == expected


def test_suspension_scales_to_zero() -> None:
    assert Deployment(build_named(spec={"replicas": 3})).render(suspended=True)["spec"] == {"replicas": 0}


def test_the_spec_has_its_own_edits() -> None:
    def hold(m: DeploymentMutator) -> None:
        m.ensure_replicas(2)
        m.edit_deployment_spec(lambda spec: spec.set(paused=True))

    deployment = Deployment(build_named(), mutations=Mutation("hold", hold))
    assert deployment.render()["spec"] == {"replicas": 2, "paused": True}
