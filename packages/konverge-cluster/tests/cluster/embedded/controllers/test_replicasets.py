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


async def test_it_makes_pods_with_generated_names_and_itself_as_controller(stage: ControllerHarness) -> None:
    created = stage.create(replica_set())
    await stage.advance()

    first, second = stage.list_objects(POD)
    assert first["metadata"]["generateName"] == "web-"
    assert first["metadata"]["name"] != second["metadata"]["name"]
    assert first["metadata"]["labels"] == {"app": "web"}
    assert first["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert stage.get(REPLICA_SET, "web")["status"] == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }


async def test_a_pod_that_is_deleted_is_replaced(stage: ControllerHarness) -> None:
    stage.create(replica_set())
    await stage.advance()
    doomed, spared = stage.list_names(POD)

    stage.delete(POD, doomed)
    await stage.advance()

    assert doomed not in stage.list_names(POD)
    assert spared in stage.list_names(POD)
    assert read_counts(stage.get(REPLICA_SET, "web"), "replicas", "readyReplicas") == (2, 2)


async def test_scaling_down_gives_up_what_is_not_ready_first(stage: ControllerHarness) -> None:
    stage.rules.never_ready("konverge.test/flaky")
    stage.create(replica_set(image="konverge.test/flaky", replicas=1))
    await stage.advance()
    (stuck,) = stage.list_names(POD)
    ready = {"metadata": {"name": "ready", "namespace": "default", "labels": {"app": "web"}}, **_pod_body()}
    stage.create(ready)
    stage.change_spec(REPLICA_SET, "web", replicas=2)
    await stage.advance()

    stage.change_spec(REPLICA_SET, "web", replicas=1)
    await stage.advance()

    assert stuck not in stage.list_names(POD)
    assert stage.list_names(POD) == ["ready"]


async def test_matching_pods_that_nobody_controls_are_taken_over(stage: ControllerHarness) -> None:
    stage.create({"metadata": {"name": "loose", "namespace": "default", "labels": {"app": "web"}}, **_pod_body()})
    await stage.advance()

    created = stage.create(replica_set(replicas=1))
    await stage.advance()

    assert stage.list_names(POD) == ["loose"]
    (reference,) = stage.get(POD, "loose")["metadata"]["ownerReferences"]
    assert reference["uid"] == created["metadata"]["uid"]
    assert reference["controller"] is True


async def test_a_pod_that_no_longer_matches_is_let_go_and_replaced(stage: ControllerHarness) -> None:
    stage.create(replica_set(replicas=1))
    await stage.advance()
    (pod,) = stage.list_objects(POD)

    pod["metadata"]["labels"] = {"app": "quarantine"}
    stage.api.update(POD, pod)
    await stage.advance()

    released = stage.get(POD, pod["metadata"]["name"])
    assert "ownerReferences" not in released["metadata"] or released["metadata"]["ownerReferences"] == []
    assert len(stage.list_names(POD)) == 2


async def test_pods_that_never_get_ready_count_as_replicas_only(stage: ControllerHarness) -> None:
    stage.create(replica_set(image=NEVER_READY))
    await stage.advance()

    found = stage.get(REPLICA_SET, "web")
    assert read_counts(found, "replicas", "readyReplicas", "availableReplicas") == (2, 0, 0)


def _pod_body() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]},
    }
