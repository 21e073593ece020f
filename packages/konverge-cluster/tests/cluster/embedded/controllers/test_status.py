from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from konverge.errors import ForbiddenError
from konverge.kube import Object
from konverge_cluster._internal.embedded.controllers.deployment_status import (
    build_deployment_status,
    build_rollout_status,
    compute_seconds_to_deadline,
)
from konverge_cluster._internal.embedded.controllers.replicasets import build_replica_set_status
from tests.cluster.embedded.controllers.controller_harness import build_deployment, read_condition

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
MOMENT = "2026-01-01T00:01:00Z"


def build_stored(status: Object | None = None, **spec: Any) -> Object:
    found = build_deployment(**spec)
    return {**found, "metadata": {**found["metadata"], "generation": 2}, "status": status or {}}


def replica_set(replicas: int, **status: object) -> Object:
    template = build_deployment()["spec"]["template"]
    return {
        "metadata": {"name": "web-abc", "generation": 1},
        "spec": {"replicas": replicas, "template": template},
        "status": {"replicas": replicas, **status},
    }


def progressing(reason: str, since: str = "2026-01-01T00:00:00Z", status: str = "True") -> Object:
    found = {"type": "Progressing", "status": status, "reason": reason, "message": ""}
    return {"conditions": [found | {"lastUpdateTime": since, "lastTransitionTime": since}]}


def test_counts_that_are_zero_are_left_out() -> None:
    status = build_deployment_status(build_stored(replicas=0), [], None, NOW)

    assert status.keys() == {"observedGeneration", "terminatingReplicas", "conditions"}


def test_replica_sets_count_together() -> None:
    old, new = replica_set(2, availableReplicas=2, readyReplicas=2), replica_set(1, terminatingReplicas=1)

    status = build_deployment_status(build_stored(replicas=3), [old, new], new, NOW)

    assert (status["replicas"], status["updatedReplicas"]) == (3, 1)
    assert (status["availableReplicas"], status["unavailableReplicas"]) == (2, 1)
    assert status["terminatingReplicas"] == 1


def test_each_sign_of_progress_starts_the_deadline_anew() -> None:
    found = build_stored(progressing("ReplicaSetUpdated"), replicas=2)
    new = replica_set(2, availableReplicas=1, readyReplicas=1)

    (condition_found,) = [
        each for each in build_rollout_status(found, [new], new, NOW)["conditions"] if each["type"] == "Progressing"
    ]

    assert condition_found["lastUpdateTime"] == MOMENT
    assert condition_found["lastTransitionTime"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("since", "expected"),
    [("2026-01-01T00:00:30Z", 31.0), ("2026-01-01T00:00:00Z", 1.0), ("2025-01-01T00:00:00Z", 1.0)],
)
def test_the_deadline_is_looked_at_a_second_after_it_passed(since: str, expected: float) -> None:
    found = build_stored(progressing("ReplicaSetUpdated", since), progressDeadlineSeconds=60)

    assert compute_seconds_to_deadline(found, found["status"], NOW) == expected


@pytest.mark.parametrize("reason", ["NewReplicaSetAvailable", "ProgressDeadlineExceeded"])
def test_no_deadline_runs_for_a_rollout_that_has_ended(reason: str) -> None:
    found = build_stored(progressing(reason), progressDeadlineSeconds=60)

    assert compute_seconds_to_deadline(found, found["status"], NOW) is None


def test_pods_that_cannot_be_created_are_a_replica_failure_of_both() -> None:
    found = replica_set(2)

    found["status"] = build_replica_set_status(found, [], 0, NOW, ForbiddenError("quota exceeded"))
    status = build_rollout_status(build_stored(replicas=2), [found], found, NOW)

    assert read_condition(found, "ReplicaFailure") == ("True", "FailedCreate")
    assert read_condition({"status": status}, "ReplicaFailure") == ("True", "FailedCreate")


def test_a_replica_failure_goes_once_pods_can_be_created() -> None:
    found = replica_set(0)
    found["status"] = build_replica_set_status(found, [], 0, NOW, ForbiddenError("quota exceeded"))

    assert "conditions" not in build_replica_set_status(found, [], 0, NOW)
