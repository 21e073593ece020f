"""A StatefulSet's health, grace and suspension, by the situations that a cluster shows."""

from __future__ import annotations

import pytest

from konverge.errors import KonvergeError
from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    StatefulSet,
    StatefulSetMutator,
    Suspension,
    SuspensionStatus,
)
from tests.primitives.objects import build_named

NONE = Operation.NONE
READY = "All replicas are ready"


def live(spec: Object, status: Object, *, generation: int = 1) -> Object:
    """A StatefulSet as the server has it; its controller has observed the spec unless `status` says otherwise."""
    return {
        "metadata": {"generation": generation},
        "spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, **spec},
        "status": {"observedGeneration": generation, **status},
    }


def counts(ready: int, updated: int, total: int, *, is_current: bool = True) -> Object:
    return {
        "readyReplicas": ready,
        "updatedReplicas": updated,
        "replicas": total,
        "currentRevision": "db-2" if is_current else "db-1",
        "updateRevision": "db-2",
    }


def partition(count: int) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": count}}}


NOT_OBSERVED = live({"replicas": 3}, {**counts(3, 3, 3), "observedGeneration": 1}, generation=2)
STARTING = live({"replicas": 3}, counts(1, 2, 2))
NONE_READY = live({"replicas": 3}, counts(0, 1, 1))
SURPLUS_TERMINATING = live({"replicas": 2}, counts(2, 3, 3))
ROLLOUT_UNFINISHED = live({"replicas": 3}, counts(3, 1, 3, is_current=False))
REVISION_NOT_CURRENT = live({"replicas": 3}, counts(3, 3, 3, is_current=False))
CANARY_UNFINISHED = live({"replicas": 3, **partition(1)}, counts(3, 1, 3, is_current=False))
CANARY_DONE = live({"replicas": 3, **partition(1)}, counts(3, 2, 3, is_current=False))
ALL_HELD_BACK = live({"replicas": 3, **partition(5)}, counts(3, 0, 3, is_current=False))
ON_DELETE = live({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}, counts(3, 0, 3, is_current=False))
ZERO_REPLICAS = live({"replicas": 0}, counts(0, 0, 0))
ALL_READY = live({"replicas": 3}, counts(3, 3, 3))


@pytest.mark.parametrize(
    ("found", "operation", "status", "reason"),
    [
        pytest.param(
            NOT_OBSERVED,
            Operation.UPDATED,
            ConvergingStatus.UPDATING,
            "Waiting for statefulset controller to observe latest spec",
            id="updated, not observed",
        ),
        pytest.param(
            STARTING,
            Operation.CREATED,
            ConvergingStatus.CREATING,
            "Waiting for replicas: 1/3 ready",
            id="starting in order",
        ),
        pytest.param(STARTING, NONE, ConvergingStatus.SCALING, "Waiting for replicas: 1/3 ready", id="scaling"),
        pytest.param(
            SURPLUS_TERMINATING,
            NONE,
            ConvergingStatus.UPDATING,
            "Waiting for rollout: 1 old replicas pending termination",
            id="surplus terminating",
        ),
        pytest.param(
            ROLLOUT_UNFINISHED,
            NONE,
            ConvergingStatus.UPDATING,
            "Waiting for rollout: 1/3 replicas updated",
            id="rollout unfinished",
        ),
        pytest.param(
            REVISION_NOT_CURRENT,
            NONE,
            ConvergingStatus.UPDATING,
            "Waiting for rollout: update revision is not current yet",
            id="revision not current",
        ),
        pytest.param(
            CANARY_UNFINISHED,
            NONE,
            ConvergingStatus.UPDATING,
            "Waiting for rollout: 1/2 replicas updated",
            id="partition, unfinished",
        ),
        pytest.param(CANARY_DONE, NONE, ConvergingStatus.HEALTHY, READY, id="partition, as far as it goes"),
        pytest.param(ALL_HELD_BACK, NONE, ConvergingStatus.HEALTHY, READY, id="partition beyond all replicas"),
        pytest.param(ON_DELETE, NONE, ConvergingStatus.HEALTHY, READY, id="OnDelete never waits"),
        pytest.param(ZERO_REPLICAS, NONE, ConvergingStatus.HEALTHY, READY, id="zero replicas"),
        pytest.param(ALL_READY, NONE, ConvergingStatus.HEALTHY, READY, id="ready"),
        pytest.param({}, NONE, ConvergingStatus.SCALING, "Waiting for replicas: 0/1 ready", id="an empty object"),
    ],
)
def test_health(found: Object, operation: Operation, status: ConvergingStatus, reason: str) -> None:
    assert StatefulSet(build_named()).converging_status(found, operation) == Convergence(status, reason)


@pytest.mark.parametrize(
    ("found", "status", "reason"),
    [
        pytest.param(NONE_READY, GraceStatus.DOWN, "No replicas are ready", id="none ready"),
        pytest.param(STARTING, GraceStatus.DEGRADED, "StatefulSet partially available", id="some ready"),
        pytest.param(
            REVISION_NOT_CURRENT,
            GraceStatus.DEGRADED,
            "Waiting for rollout: update revision is not current yet",
            id="rollout unfinished",
        ),
        pytest.param(ON_DELETE, GraceStatus.HEALTHY, READY, id="OnDelete"),
        pytest.param(ALL_READY, GraceStatus.HEALTHY, READY, id="ready"),
    ],
)
def test_grace(found: Object, status: GraceStatus, reason: str) -> None:
    assert StatefulSet(build_named()).grace_status(found) == Grace(status, reason)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            live({"replicas": 0}, {"replicas": 1}),
            Suspension(SuspensionStatus.SUSPENDING, "Waiting for replicas to scale down, 1 replicas still running."),
            id="scaling down",
        ),
        pytest.param(
            live({"replicas": 0}, {}),
            Suspension(SuspensionStatus.SUSPENDED, "StatefulSet scaled to zero"),
            id="scaled down",
        ),
    ],
)
def test_suspension(found: Object, expected: Suspension) -> None:
    assert StatefulSet(build_named()).suspension_status(found) == expected


def claim(name: str, size: str = "1Gi") -> Object:
    return {"metadata": {"name": name}, "spec": {"resources": {"requests": {"storage": size}}}}


def claims(m: StatefulSetMutator) -> None:
    m.ensure_volume_claim_template(claim("data", "2Gi"))
    m.ensure_volume_claim_template(claim("logs"))
    m.remove_volume_claim_template("cache")


def test_volume_claim_templates_are_edited_by_name() -> None:
    baseline = build_named(spec={"volumeClaimTemplates": [claim("data"), claim("cache")]})
    desired = StatefulSet(baseline, mutations=Mutation("claims", claims)).render()
    assert desired["spec"]["volumeClaimTemplates"] == [claim("data", "2Gi"), claim("logs")]


def test_volume_claim_templates_of_a_stored_object_are_left_alone() -> None:
    baseline = build_named(spec={"volumeClaimTemplates": [claim("data")]})
    baseline["metadata"]["resourceVersion"] = "7"
    desired = StatefulSet(baseline, mutations=Mutation("claims", claims)).render()
    assert desired["spec"]["volumeClaimTemplates"] == [claim("data")]


def test_a_volume_claim_template_needs_a_name() -> None:
    nameless = Mutation[StatefulSetMutator]("claims", lambda m: m.ensure_volume_claim_template({"spec": {}}))
    with pytest.raises(KonvergeError, match=r"intent for claims: ValueError: .* metadata.name: expected a name"):
        StatefulSet(build_named(), mutations=nameless).render()


def test_the_spec_has_its_own_edits() -> None:
    def shape(m: StatefulSetMutator) -> None:
        m.edit_stateful_set_spec(lambda spec: spec.set(serviceName="db"))
        m.ensure_replicas(3)

    assert StatefulSet(build_named(), mutations=Mutation("shape", shape)).render()["spec"] == {
        "serviceName": "db",
        "replicas": 3,
    }
