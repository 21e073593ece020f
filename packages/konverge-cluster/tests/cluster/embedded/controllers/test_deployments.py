from __future__ import annotations

import pytest

from konverge.kube import Object, find_condition
from tests.cluster.embedded.controllers.controller_harness import (
    DEPLOYMENT,
    NEVER_READY,
    POD,
    REPLICA_SET,
    SLOW,
    ControllerHarness,
    build_deployment,
    read_condition,
    read_counts,
)

pytestmark = pytest.mark.anyio

REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"


def sizes(harness: ControllerHarness) -> dict[str, int]:
    """Return the desired sizes of the ReplicaSets by the image of their template."""
    return {
        found["spec"]["template"]["spec"]["containers"][0]["image"]: found["spec"]["replicas"]
        for found in harness.list_objects(REPLICA_SET)
    }


def revisions(harness: ControllerHarness) -> dict[str, str]:
    """Return the revisions of the ReplicaSets by the image of their template."""
    return {
        found["spec"]["template"]["spec"]["containers"][0]["image"]: found["metadata"]["annotations"][REVISION]
        for found in harness.list_objects(REPLICA_SET)
    }


async def test_a_new_deployment_becomes_available_and_complete(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=2))
    await harness.advance()

    found = harness.get(DEPLOYMENT, "web")
    (replica_set,) = harness.list_objects(REPLICA_SET)
    name = replica_set["metadata"]["name"]
    moment = "2026-01-01T00:00:01Z"
    assert found["status"] == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "terminatingReplicas": 0,
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "lastUpdateTime": moment,
                "lastTransitionTime": moment,
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
            },
            {
                "type": "Progressing",
                "status": "True",
                "lastUpdateTime": moment,
                "lastTransitionTime": moment,
                "reason": "NewReplicaSetAvailable",
                "message": f'ReplicaSet "{name}" has successfully progressed.',
            },
        ],
    }
    assert found["metadata"]["annotations"] == {REVISION: "1"}
    assert found["metadata"]["generation"] == 1


async def test_a_replica_set_is_named_and_labelled_by_the_hash_of_its_template(harness: ControllerHarness) -> None:
    created = harness.create(build_deployment(replicas=2))
    await harness.advance()

    (replica_set,) = harness.list_objects(REPLICA_SET)
    metadata, spec = replica_set["metadata"], replica_set["spec"]
    template_hash = metadata["labels"]["pod-template-hash"]
    assert metadata["name"] == f"web-{template_hash}"
    assert metadata["labels"] == {"app": "web", "pod-template-hash": template_hash}
    assert spec["selector"]["matchLabels"] == metadata["labels"] == spec["template"]["metadata"]["labels"]
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": created["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert metadata["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
    }


async def test_annotations_are_passed_on_but_not_what_kubectl_notes(harness: ControllerHarness) -> None:
    wanted = build_deployment()
    wanted["metadata"]["annotations"] = {"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    harness.create(wanted)
    await harness.advance()
    found = harness.get(DEPLOYMENT, "web")
    found["metadata"]["annotations"]["team"] = "b"
    harness.api.update(DEPLOYMENT, found)
    await harness.advance()

    (replica_set,) = harness.list_objects(REPLICA_SET)
    assert replica_set["metadata"]["annotations"]["team"] == "b"
    assert "kubectl.kubernetes.io/last-applied-configuration" not in replica_set["metadata"]["annotations"]


async def test_a_rollout_never_has_fewer_available_pods_than_wanted(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=3))
    await harness.advance()
    harness.changes.clear()

    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:2")
    await harness.advance()

    seen = [
        read_counts(change.new, "replicas", "availableReplicas")
        for change in harness.changes
        if change.resource == "deployments.apps"
    ]
    assert min(available for _, available in seen) == 3
    assert max(replicas for replicas, _ in seen) == 4
    assert sizes(harness) == {"konverge.test/app:1": 0, "konverge.test/app:2": 3}
    assert read_condition(harness.get(DEPLOYMENT, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_an_image_that_never_gets_ready_stops_the_rollout_and_passes_the_deadline(
    harness: ControllerHarness,
) -> None:
    harness.create(build_deployment(replicas=3, progressDeadlineSeconds=60))
    await harness.advance()

    harness.set_image(DEPLOYMENT, "web", NEVER_READY)
    await harness.advance(59)
    before = harness.get(DEPLOYMENT, "web")
    await harness.advance(5)
    after = harness.get(DEPLOYMENT, "web")

    assert sizes(harness) == {"konverge.test/app:1": 3, NEVER_READY: 1}
    assert read_condition(before, "Progressing") == ("True", "ReplicaSetUpdated")
    assert read_condition(after, "Progressing") == ("False", "ProgressDeadlineExceeded")
    assert read_condition(after, "Available") == ("True", "MinimumReplicasAvailable")
    assert read_counts(after, "replicas", "updatedReplicas", "readyReplicas", "unavailableReplicas") == (4, 1, 3, 1)
    progressing = find_condition(after, "Progressing")
    assert progressing is not None
    assert progressing.message.startswith('ReplicaSet "web-')
    assert progressing.message.endswith('" has timed out progressing.')


async def test_a_failed_rollout_recovers_with_a_good_image(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=3, progressDeadlineSeconds=10))
    await harness.advance()
    harness.set_image(DEPLOYMENT, "web", NEVER_READY)
    await harness.advance(60)

    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:3")
    await harness.advance()

    assert read_condition(harness.get(DEPLOYMENT, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")
    assert sizes(harness) == {"konverge.test/app:1": 0, NEVER_READY: 0, "konverge.test/app:3": 3}


async def test_going_back_to_an_earlier_template_reuses_its_replica_set(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()
    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:2")
    await harness.advance()

    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:1")
    await harness.advance()

    assert revisions(harness) == {"konverge.test/app:1": "3", "konverge.test/app:2": "2"}
    (reused,) = [found for found in harness.list_objects(REPLICA_SET) if found["spec"]["replicas"]]
    assert reused["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"
    assert harness.get(DEPLOYMENT, "web")["metadata"]["annotations"][REVISION] == "3"


async def test_scaling_is_no_rollout(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=1))
    await harness.advance()
    harness.changes.clear()

    harness.change_spec(DEPLOYMENT, "web", replicas=4)
    await harness.advance()

    found = harness.get(DEPLOYMENT, "web")
    reasons = {
        read_condition(change.new, "Progressing") for change in harness.changes if change.resource == "deployments.apps"
    }
    assert reasons == {("True", "NewReplicaSetAvailable")}
    assert read_counts(found, "replicas", "readyReplicas", "unavailableReplicas") == (4, 4, 0)
    assert len(harness.list_names(REPLICA_SET)) == 1


async def test_availability_is_lost_and_regained_while_scaling_up(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=1, image=SLOW))
    await harness.advance(5)

    harness.change_spec(DEPLOYMENT, "web", replicas=2)
    await harness.advance(1)
    during = harness.get(DEPLOYMENT, "web")
    await harness.advance(5)
    after = harness.get(DEPLOYMENT, "web")

    assert read_condition(during, "Available") == ("False", "MinimumReplicasUnavailable")
    assert read_condition(after, "Available") == ("True", "MinimumReplicasAvailable")


async def test_scaled_to_zero_it_is_available_without_pods(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=2))
    await harness.advance()

    harness.change_spec(DEPLOYMENT, "web", replicas=0)
    await harness.advance()

    found = harness.get(DEPLOYMENT, "web")
    assert found["status"]["observedGeneration"] == 2
    assert "replicas" not in found["status"]
    assert read_condition(found, "Available") == ("True", "MinimumReplicasAvailable")
    assert harness.list_names(POD) == []


async def test_scaling_in_the_middle_of_a_rollout_is_shared(harness: ControllerHarness) -> None:
    harness.create(
        build_deployment(
            replicas=4, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 4, "maxUnavailable": 0}}
        )
    )
    await harness.advance()
    harness.set_image(DEPLOYMENT, "web", NEVER_READY)
    await harness.advance()
    before = sizes(harness)

    harness.change_spec(DEPLOYMENT, "web", replicas=8)
    await harness.advance()

    assert before == {"konverge.test/app:1": 4, NEVER_READY: 4}
    assert sizes(harness) == {"konverge.test/app:1": 6, NEVER_READY: 6}


async def test_scaling_leaves_the_notes_of_replica_sets_without_pods_alone(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=2))
    await harness.advance()
    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:2")
    await harness.advance()
    harness.set_image(DEPLOYMENT, "web", NEVER_READY)
    await harness.advance()
    harness.change_spec(DEPLOYMENT, "web", replicas=4)
    await harness.advance()

    noted = {
        found["metadata"]["annotations"][REVISION]: found["metadata"]["annotations"][DESIRED_REPLICAS]
        for found in harness.list_objects(REPLICA_SET)
    }
    assert noted == {"1": "2", "2": "4", "3": "4"}


async def test_a_paused_deployment_scales_but_does_not_roll(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()
    harness.change_spec(DEPLOYMENT, "web", paused=True)
    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:2")
    harness.change_spec(DEPLOYMENT, "web", replicas=2)
    await harness.advance()
    paused = harness.get(DEPLOYMENT, "web")
    sizes_while_paused = sizes(harness)

    harness.change_spec(DEPLOYMENT, "web", paused=False)
    await harness.advance()

    assert read_condition(paused, "Progressing") == ("Unknown", "DeploymentPaused")
    assert read_counts(paused, "observedGeneration", "replicas", "updatedReplicas") == (4, 2, 0)
    assert sizes_while_paused == {"konverge.test/app:1": 2}
    assert sizes(harness) == {"konverge.test/app:1": 0, "konverge.test/app:2": 2}
    assert read_condition(harness.get(DEPLOYMENT, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")


async def test_recreate_has_no_old_pod_beside_a_new_one(harness: ControllerHarness) -> None:
    harness.create(build_deployment(replicas=2, strategy={"type": "Recreate"}))
    await harness.advance()
    harness.changes.clear()

    harness.set_image(DEPLOYMENT, "web", "konverge.test/app:2")
    await harness.advance()

    log = harness.list_changes("pods")
    last_gone = max(index for index, line in enumerate(log) if line.startswith("DELETED"))
    first_new = min(index for index, line in enumerate(log) if line.startswith("ADDED"))
    assert last_gone < first_new
    assert sizes(harness) == {"konverge.test/app:1": 0, "konverge.test/app:2": 2}


async def test_old_replica_sets_are_kept_by_the_history_limit(harness: ControllerHarness) -> None:
    harness.create(build_deployment(revisionHistoryLimit=1))
    await harness.advance()
    for version in (2, 3, 4):
        harness.set_image(DEPLOYMENT, "web", f"konverge.test/app:{version}")
        await harness.advance()

    assert revisions(harness) == {"konverge.test/app:3": "3", "konverge.test/app:4": "4"}


async def test_min_ready_seconds_delay_availability(harness: ControllerHarness) -> None:
    harness.create(build_deployment(minReadySeconds=10))
    await harness.advance(5)
    early = harness.get(DEPLOYMENT, "web")
    await harness.advance(6)
    late = harness.get(DEPLOYMENT, "web")

    assert read_counts(early, "readyReplicas", "availableReplicas", "unavailableReplicas") == (1, 0, 1)
    assert read_counts(late, "readyReplicas", "availableReplicas", "unavailableReplicas") == (1, 1, 0)


async def test_a_hash_that_is_taken_by_another_is_counted_as_a_collision(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()
    (made,) = harness.list_objects(REPLICA_SET)
    harness.delete(DEPLOYMENT, "web", "Orphan")
    await harness.advance()
    foreign: Object = harness.get(REPLICA_SET, made["metadata"]["name"])
    foreign["metadata"]["labels"] = {"other": "owner"}
    harness.api.update(REPLICA_SET, foreign)
    harness.create(build_deployment())
    await harness.advance()

    assert harness.get(DEPLOYMENT, "web")["status"]["collisionCount"] == 1
    assert len(harness.list_names(REPLICA_SET)) == 2


async def test_without_a_deadline_progress_is_not_judged(harness: ControllerHarness) -> None:
    harness.create(build_deployment(image=NEVER_READY, progressDeadlineSeconds=2**31 - 1))
    await harness.advance(4000)

    assert find_condition(harness.get(DEPLOYMENT, "web"), "Progressing") is None
