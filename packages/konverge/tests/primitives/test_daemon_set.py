"""A DaemonSet's health, grace and suspension, by the situations that a cluster shows."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    DaemonSet,
    DaemonSetMutator,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

NONE = Operation.NONE
READY = "All replicas are ready"
UNOBSERVED = "Waiting for daemonset controller to observe latest spec"
NO_NODES = "No nodes match the DaemonSet"


def live(desired: int, ready: int, updated: int, *, strategy: str = "RollingUpdate", generation: int = 1) -> Object:
    """A DaemonSet as the server has it; its controller has observed generation 1."""
    return {
        "metadata": {"generation": generation},
        "spec": {"updateStrategy": {"type": strategy}},
        "status": {
            "observedGeneration": 1,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
            "updatedNumberScheduled": updated,
        },
    }


CREATED_NOT_OBSERVED: Object = {
    "metadata": {"generation": 1},
    "status": {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
}
UPDATED_NOT_OBSERVED = live(3, 3, 3, generation=2)
STARTING = live(3, 1, 3)
NONE_READY = live(3, 0, 3)
ROLLOUT_UNFINISHED = live(3, 3, 1)
ON_DELETE = live(3, 3, 0, strategy="OnDelete")
NO_NODE_MATCHES = live(0, 0, 0)
ALL_READY = live(3, 3, 3)


@pytest.mark.parametrize(
    ("found", "operation", "status", "reason"),
    [
        pytest.param(
            CREATED_NOT_OBSERVED, Operation.CREATED, ConvergingStatus.CREATING, UNOBSERVED, id="created, not observed"
        ),
        pytest.param(
            UPDATED_NOT_OBSERVED, Operation.UPDATED, ConvergingStatus.UPDATING, UNOBSERVED, id="updated, not observed"
        ),
        pytest.param(
            STARTING,
            Operation.CREATED,
            ConvergingStatus.CREATING,
            "Waiting for replicas: 1/3 ready",
            id="starting after creation",
        ),
        pytest.param(
            STARTING,
            Operation.UPDATED,
            ConvergingStatus.UPDATING,
            "Waiting for replicas: 1/3 ready",
            id="starting after an update",
        ),
        pytest.param(STARTING, NONE, ConvergingStatus.SCALING, "Waiting for replicas: 1/3 ready", id="a node joined"),
        pytest.param(
            ROLLOUT_UNFINISHED,
            NONE,
            ConvergingStatus.UPDATING,
            "Waiting for rollout: 1/3 replicas updated",
            id="rollout unfinished",
        ),
        pytest.param(ON_DELETE, NONE, ConvergingStatus.HEALTHY, READY, id="OnDelete never waits"),
        pytest.param(NO_NODE_MATCHES, NONE, ConvergingStatus.HEALTHY, NO_NODES, id="no node matches"),
        pytest.param(ALL_READY, NONE, ConvergingStatus.HEALTHY, READY, id="ready"),
        pytest.param({}, NONE, ConvergingStatus.HEALTHY, NO_NODES, id="an empty object"),
    ],
)
def test_health(found: Object, operation: Operation, status: ConvergingStatus, reason: str) -> None:
    assert DaemonSet(build_named()).converging_status(found, operation) == Convergence(status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        pytest.param(NONE_READY, GraceStatus.DOWN, "No replicas are ready", id="none ready"),
        pytest.param(CREATED_NOT_OBSERVED, GraceStatus.DEGRADED, UNOBSERVED, id="created, not observed"),
        pytest.param(STARTING, GraceStatus.DEGRADED, "DaemonSet partially available", id="some ready"),
        pytest.param(
            ROLLOUT_UNFINISHED,
            GraceStatus.DEGRADED,
            "Waiting for rollout: 1/3 replicas updated",
            id="rollout unfinished",
        ),
        pytest.param(ON_DELETE, GraceStatus.HEALTHY, READY, id="OnDelete"),
        pytest.param(NO_NODE_MATCHES, GraceStatus.HEALTHY, NO_NODES, id="no node matches"),
        pytest.param(ALL_READY, GraceStatus.HEALTHY, READY, id="ready"),
    ],
)
def test_grace(found: Object, status: GraceStatus, reason: str) -> None:
    assert DaemonSet(build_named()).grace_status(found) == Grace(status, reason)


def test_suspension_deletes_it_at_once() -> None:
    agent = DaemonSet(build_named())
    assert agent.deletes_on_suspend
    assert agent.render(suspended=True) == agent.render()
    expected = Suspension(SuspensionStatus.SUSPENDED, "DaemonSet deleted on suspend")
    assert agent.suspension_status(ALL_READY) == expected


def test_the_spec_has_its_own_edits() -> None:
    on_delete = Mutation[DaemonSetMutator](
        "hold", lambda m: m.edit_daemon_set_spec(lambda spec: spec.set(updateStrategy={"type": "OnDelete"}))
    )
    desired = DaemonSet(build_named(), mutations=on_delete).render()
    assert desired["spec"] == {"updateStrategy": {"type": "OnDelete"}}
