from __future__ import annotations

import pytest

from konverge.kube import Object
from tests.cluster.embedded.controllers.controller_harness import (
    NEVER_READY,
    POD,
    REPLICA_SET,
    ControllerHarness,
    build_template,
    read_counts,
)

pytestmark = pytest.mark.anyio


def replica_set(name: str = "web", replicas: int = 2, image: str = "konverge.test/app:1") -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": build_template("web", image),
        },
    }


async def test_it_makes_pods_with_generated_names_and_itself_as_controller(harness: ControllerHarness) -> None:
    created = harness.create(replica_set())
    await harness.advance()

    first, second = harness.list_objects(POD)
    assert first["metadata"]["generateName"] == "web-"
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["labels"] == {"app": "web"}
    assert first["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert harness.get(REPLICA_SET, "web")["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


async def test_a_pod_that_is_deleted_is_replaced(harness: ControllerHarness) -> None:
    harness.create(replica_set())
    await harness.advance()
    doomed, spared = harness.list_names(POD)

    harness.delete(POD, doomed)
    await harness.advance()

    assert doomed not in harness.list_names(POD)
    assert spared in harness.list_names(POD)
    assert read_counts(harness.get(REPLICA_SET, "web"), "replicas", "readyReplicas") == (2, 2)


async def test_scaling_down_gives_up_what_is_not_ready_first(harness: ControllerHarness) -> None:
    harness.rules.never_ready("konverge.test/flaky")
    harness.create(replica_set(image="konverge.test/flaky", replicas=1))
    await harness.advance()
    (stuck,) = harness.list_names(POD)
    ready = {"metadata": {"name": "ready", "namespace": "default", "labels": {"app": "web"}}, **_pod_body()}
    harness.create(ready)
    harness.change_spec(REPLICA_SET, "web", replicas=2)
    await harness.advance()

    harness.change_spec(REPLICA_SET, "web", replicas=1)
    await harness.advance()

    assert stuck not in harness.list_names(POD)
    assert harness.list_names(POD) == ["ready"]


async def test_matching_pods_that_nobody_controls_are_taken_over(harness: ControllerHarness) -> None:
    harness.create({"metadata": {"name": "loose", "namespace": "default", "labels": {"app": "web"}}, **_pod_body()})
    await harness.advance()

    created = harness.create(replica_set(replicas=1))
    await harness.advance()

    assert harness.list_names(POD) == ["loose"]
    (reference,) = harness.get(POD, "loose")["metadata"]["ownerReferences"]
    assert reference["uid"] == created["metadata"]["uid"]
    assert reference["controller"] is True


async def test_a_pod_that_no_longer_matches_is_let_go_and_replaced(harness: ControllerHarness) -> None:
    harness.create(replica_set(replicas=1))
    await harness.advance()
    (pod,) = harness.list_objects(POD)

    pod["metadata"]["labels"] = {"app": "quarantine"}
    harness.api.update(POD, pod)
    await harness.advance()

    released = harness.get(POD, pod["metadata"]["name"])
    assert "ownerReferences" not in released["metadata"] or released["metadata"]["ownerReferences"] == []
    assert len(harness.list_names(POD)) == 2


async def test_pods_that_never_get_ready_count_as_replicas_only(harness: ControllerHarness) -> None:
    harness.create(replica_set(image=NEVER_READY))
    await harness.advance()

    found = harness.get(REPLICA_SET, "web")
    assert read_counts(found, "replicas", "readyReplicas", "availableReplicas") == (2, 0, 0)


def _pod_body() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]},
    }
