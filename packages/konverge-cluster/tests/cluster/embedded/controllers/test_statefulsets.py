from __future__ import annotations

import pytest

from konverge.kube import Object
from tests.cluster.embedded.controllers.controller_harness import (
    CONTROLLER_REVISION,
    NEVER_READY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SLOW,
    STATEFUL_SET,
    ControllerHarness,
    build_stateful_set,
    read_counts,
)

pytestmark = pytest.mark.anyio

REVISION_LABEL = "controller-revision-hash"
PARTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")


def images(harness: ControllerHarness) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in harness.list_objects(POD)}


def claim_template() -> Object:
    return {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }


async def test_pods_come_one_after_the_other(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(image=SLOW))
    await harness.advance(1)
    first = harness.list_names(POD)
    await harness.advance(3)
    second = harness.list_names(POD)
    await harness.advance(7)

    assert first == ["db-0"]
    assert second == ["db-0", "db-1"]
    assert harness.list_names(POD) == ["db-0", "db-1", "db-2"]
    assert read_counts(harness.get(STATEFUL_SET, "db"), *PARTS) == (3, 3, 3, 3, 3)


async def test_a_parallel_set_does_not_wait(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(image=SLOW, podManagementPolicy="Parallel"))
    await harness.advance(1)

    assert harness.list_names(POD) == ["db-0", "db-1", "db-2"]


async def test_a_pod_carries_its_identity(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=1, serviceName="dbs"))
    await harness.advance()

    pod = harness.get(POD, "db-0")
    revision = harness.get(STATEFUL_SET, "db")["status"]["currentRevision"]
    assert pod["metadata"]["labels"] == {
        "app": "db",
        "apps.kubernetes.io/pod-index": "0",
        "statefulset.kubernetes.io/pod-name": "db-0",
        REVISION_LABEL: revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-0", "dbs")


async def test_an_update_goes_from_the_highest_ordinal_down(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set())
    await harness.advance()
    before = harness.get(STATEFUL_SET, "db")["status"]
    harness.changes.clear()

    harness.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await harness.advance()

    assert [line for line in harness.list_changes("pods") if line.startswith(("ADDED", "DELETED"))] == [
        "DELETED pods db-2",
        "ADDED pods db-2",
        "DELETED pods db-1",
        "ADDED pods db-1",
        "DELETED pods db-0",
        "ADDED pods db-0",
    ]
    after = harness.get(STATEFUL_SET, "db")["status"]
    assert after["currentRevision"] == after["updateRevision"] != before["currentRevision"]
    assert read_counts(harness.get(STATEFUL_SET, "db"), *PARTS) == (3, 3, 3, 3, 3)


async def test_a_partition_keeps_the_lower_ordinals_on_the_old_template(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}))
    await harness.advance()
    harness.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await harness.advance()
    harness.delete(POD, "db-0")
    await harness.advance()

    assert images(harness) == {
        "db-0": "konverge.test/app:1",
        "db-1": "konverge.test/app:1",
        "db-2": "konverge.test/app:2",
    }
    found = harness.get(STATEFUL_SET, "db")
    assert read_counts(found, "currentReplicas", "updatedReplicas") == (2, 1)
    assert found["status"]["currentRevision"] != found["status"]["updateRevision"]


async def test_an_update_waits_for_a_pod_that_does_not_get_ready(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set())
    await harness.advance()
    harness.set_image(STATEFUL_SET, "db", NEVER_READY)
    await harness.advance(3600)

    assert images(harness) == {"db-0": "konverge.test/app:1", "db-1": "konverge.test/app:1", "db-2": NEVER_READY}


async def test_on_delete_updates_only_what_is_deleted(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(updateStrategy={"type": "OnDelete"}))
    await harness.advance()
    harness.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await harness.advance()
    before = images(harness)

    harness.delete(POD, "db-1")
    await harness.advance()

    assert set(before.values()) == {"konverge.test/app:1"}
    assert images(harness) == {
        "db-0": "konverge.test/app:1",
        "db-1": "konverge.test/app:2",
        "db-2": "konverge.test/app:1",
    }


async def test_scaling_down_takes_the_highest_first_and_keeps_the_claims(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(volumeClaimTemplates=[claim_template()]))
    await harness.advance()
    harness.changes.clear()

    harness.change_spec(STATEFUL_SET, "db", replicas=1)
    await harness.advance()

    assert [line for line in harness.list_changes("pods") if line.startswith("DELETED")] == [
        "DELETED pods db-2",
        "DELETED pods db-1",
    ]
    assert harness.list_names(PERSISTENT_VOLUME_CLAIM) == ["data-db-0", "data-db-1", "data-db-2"]


async def test_each_pod_has_its_own_claim(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=2, volumeClaimTemplates=[claim_template()]))
    await harness.advance()

    claim = harness.get(PERSISTENT_VOLUME_CLAIM, "data-db-1")
    assert claim["metadata"]["labels"] == {"app": "db"}
    assert claim["status"]["phase"] == "Bound"
    assert harness.get(POD, "db-1")["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
    ]


async def test_ordinals_may_start_elsewhere(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=2, ordinals={"start": 5}))
    await harness.advance()

    assert harness.list_names(POD) == ["db-5", "db-6"]


async def test_old_revisions_are_kept_by_the_history_limit(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=1, revisionHistoryLimit=1))
    await harness.advance()
    for version in (2, 3, 4):
        harness.set_image(STATEFUL_SET, "db", f"konverge.test/app:{version}")
        await harness.advance()

    assert [line.split()[0] for line in harness.list_changes("controllerrevisions.apps")].count("DELETED") == 2


async def test_going_back_reuses_the_earlier_revision(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=1))
    await harness.advance()
    first = harness.get(STATEFUL_SET, "db")["status"]["currentRevision"]
    harness.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await harness.advance()
    harness.set_image(STATEFUL_SET, "db", "konverge.test/app:1")
    await harness.advance()

    assert harness.get(STATEFUL_SET, "db")["status"]["currentRevision"] == first
    assert images(harness) == {"db-0": "konverge.test/app:1"}


async def test_min_ready_seconds_hold_the_next_pod_back(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=2, minReadySeconds=10))
    await harness.advance(9)
    early = harness.list_names(POD)
    await harness.advance(3)

    assert early == ["db-0"]
    assert harness.list_names(POD) == ["db-0", "db-1"]


async def test_a_set_that_comes_back_takes_its_pods_and_revisions_over(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(replicas=1))
    await harness.advance()
    before = harness.get(POD, "db-0")["metadata"]["uid"]
    harness.delete(STATEFUL_SET, "db", "Orphan")
    await harness.advance()

    created = harness.create(build_stateful_set(replicas=1))
    await harness.advance()

    pod, (revision,) = harness.get(POD, "db-0"), harness.list_objects(CONTROLLER_REVISION)
    assert pod["metadata"]["uid"] == before
    assert pod["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert revision["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]


async def test_scaling_down_waits_while_a_lower_pod_is_not_ready_either(harness: ControllerHarness) -> None:
    harness.create(build_stateful_set(updateStrategy={"type": "OnDelete"}))
    await harness.advance()
    harness.set_image(STATEFUL_SET, "db", NEVER_READY)
    for name in ("db-2", "db-1"):
        harness.delete(POD, name)
        await harness.advance()

    harness.change_spec(STATEFUL_SET, "db", replicas=1)
    await harness.advance()
    waiting = harness.list_names(POD)
    harness.rules.ready(NEVER_READY)
    await harness.advance()

    assert waiting == ["db-0", "db-1", "db-2"]
    assert harness.list_names(POD) == ["db-0"]
