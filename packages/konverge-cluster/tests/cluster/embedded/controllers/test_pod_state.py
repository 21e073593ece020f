from __future__ import annotations

from datetime import UTC, datetime

import pytest

from konverge.kube import Object
from konverge_cluster._internal.embedded.controllers.pod_state import (
    compute_seconds_to_available,
    is_active,
    is_available,
    sort_for_deletion,
)

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


def pod(
    name: str,
    *,
    phase: str = "Running",
    ready_since: str = "",
    node: str = "node-0",
    created: str = "2026-01-01T00:00:00Z",
    **metadata: object,
) -> Object:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready_since}] if ready_since else []
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": created, **metadata},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": conditions},
    }


def test_a_pod_is_available_once_it_has_been_ready_for_long_enough() -> None:
    found = pod("a", ready_since="2026-01-01T00:00:50Z")

    assert compute_seconds_to_available(found, 30, NOW) == 20
    assert is_available(found, 10, NOW)
    assert not is_available(found, 11, NOW)


def test_a_pod_that_is_not_ready_is_not_getting_available() -> None:
    assert compute_seconds_to_available(pod("a"), 0, NOW) is None


@pytest.mark.parametrize(
    "found", [pod("a", phase="Succeeded"), pod("a", phase="Failed"), pod("a", deletionTimestamp="2026-01-01T00:00:00Z")]
)
def test_finished_and_deleted_pods_do_not_count(found: Object) -> None:
    assert not is_active(found)


def test_pods_are_given_up_from_the_least_to_the_most_useful() -> None:
    pods = [
        pod("old", ready_since="2026-01-01T00:00:01Z"),
        pod(
            "cheap",
            ready_since="2026-01-01T00:00:01Z",
            annotations={"controller.kubernetes.io/pod-deletion-cost": "-1"},
        ),
        pod("unready"),
        pod("pending", phase="Pending"),
        pod("homeless", phase="Pending", node=""),
        pod("young", ready_since="2026-01-01T00:00:59Z"),
    ]

    order = [found["metadata"]["name"] for found in sort_for_deletion(pods, NOW)]

    assert order == ["homeless", "pending", "unready", "cheap", "young", "old"]


def test_equal_pods_are_given_up_by_their_uid() -> None:
    pods = [pod("b", ready_since="2026-01-01T00:00:02Z"), pod("a", ready_since="2026-01-01T00:00:01Z")]

    assert [found["metadata"]["name"] for found in sort_for_deletion(pods, NOW)] == ["a", "b"]
