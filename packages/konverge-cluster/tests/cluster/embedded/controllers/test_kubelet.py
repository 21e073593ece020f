from __future__ import annotations

import pytest

from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.cluster.embedded.controllers.controller_harness import (
    APP,
    NEVER_READY,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SLOW,
    ControllerHarness,
    read_condition,
)

pytestmark = pytest.mark.anyio

MOMENT = "2026-01-01T00:00:01Z"
NODE = GroupVersionKind("", "v1", "Node")


def pod(name: str = "web", *images: str, **spec: object) -> Object:
    containers = [{"name": f"c{index}", "image": image} for index, image in enumerate(images or (APP,))]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": containers, **spec},
    }


def waiting_reason(obj: Object) -> str:
    (status,) = obj["status"]["containerStatuses"]
    return str(status["state"]["waiting"]["reason"])


async def test_there_is_one_node_and_it_is_ready(harness: ControllerHarness) -> None:
    (node,) = harness.api.list(NODE)

    assert read_condition(node, "Ready") == ("True", "KubeletReady")
    assert node["status"]["capacity"] == node["status"]["allocatable"]


async def test_a_pod_is_scheduled_runs_and_gets_ready(harness: ControllerHarness) -> None:
    harness.create(pod())
    await harness.advance()

    found = harness.get(POD, "web")
    status = found["status"]
    assert found["spec"]["nodeName"] == "node-0"
    assert [(each["type"], each["status"], each["lastTransitionTime"]) for each in status["conditions"]] == [
        ("PodReadyToStartContainers", "True", MOMENT),
        ("Initialized", "True", MOMENT),
        ("Ready", "True", MOMENT),
        ("ContainersReady", "True", MOMENT),
        ("PodScheduled", "True", MOMENT),
    ]
    assert status["phase"] == "Running"
    assert status["qosClass"] == "BestEffort"
    assert status["startTime"] == MOMENT
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    (container,) = status["containerStatuses"]
    assert container["image"] == APP
    assert container["state"] == {"running": {"startedAt": MOMENT}}
    assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)


async def test_a_pod_is_seen_pending_before_it_runs(harness: ControllerHarness) -> None:
    harness.create(pod())
    await harness.advance()

    phases = [change.new["status"]["phase"] for change in harness.changes if change.resource == "pods"]
    assert list(dict.fromkeys(phases)) == ["Pending", "Running"]


@pytest.mark.slow
async def test_each_pod_has_its_own_address(harness: ControllerHarness) -> None:
    for index in range(300):
        harness.create(pod(f"web-{index}"))
    await harness.advance()

    assert len({found["status"]["podIP"] for found in harness.list_objects(POD)}) == 300


async def test_on_the_hosts_network_a_pod_has_the_nodes_address(harness: ControllerHarness) -> None:
    harness.create(pod(hostNetwork=True))
    await harness.advance()

    status = harness.get(POD, "web")["status"]
    assert status["podIP"] == status["hostIP"]


async def test_a_slow_image_runs_at_once_and_is_ready_after_three_seconds(harness: ControllerHarness) -> None:
    harness.create(pod("web", SLOW))
    await harness.advance(2.9)
    early = harness.get(POD, "web")
    await harness.advance(0.2)
    late = harness.get(POD, "web")

    assert early["status"]["phase"] == "Running"
    assert read_condition(early, "Ready") == ("False", "ContainersNotReady")
    assert read_condition(late, "Ready")[0] == "True"


async def test_an_image_that_cannot_be_pulled_keeps_the_pod_pending(harness: ControllerHarness) -> None:
    harness.create(pod("web", NEVER_READY))
    await harness.advance(3600)

    found = harness.get(POD, "web")
    assert found["status"]["phase"] == "Pending"
    assert waiting_reason(found) == "ImagePullBackOff"
    assert read_condition(found, "Ready") == ("False", "ContainersNotReady")
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    assert ready["message"] == "containers with unready status: [c0]"


async def test_one_bad_container_of_two_keeps_the_pod_from_being_ready(harness: ControllerHarness) -> None:
    harness.create(pod("web", APP, NEVER_READY))
    await harness.advance()

    found = harness.get(POD, "web")
    assert [each["ready"] for each in found["status"]["containerStatuses"]] == [True, False]
    ready = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    assert ready["message"] == "containers with unready status: [c1]"


async def test_a_failing_image_backs_off(harness: ControllerHarness) -> None:
    harness.rules.failing("konverge.test/broken")
    harness.create(pod("web", "konverge.test/broken"))
    await harness.advance()

    found = harness.get(POD, "web")
    (container,) = found["status"]["containerStatuses"]
    assert found["status"]["phase"] == "Running"
    assert waiting_reason(found) == "CrashLoopBackOff"
    assert container["restartCount"] == 1
    assert container["lastState"]["terminated"]["exitCode"] == 1


async def test_a_changed_rule_reaches_pods_that_wait(harness: ControllerHarness) -> None:
    harness.create(pod("web", NEVER_READY))
    await harness.advance()
    harness.rules.ready("konverge.test/never-ready*")
    await harness.advance()

    assert read_condition(harness.get(POD, "web"), "Ready")[0] == "True"


async def test_a_rule_that_makes_an_image_fail_reaches_pods_that_run(harness: ControllerHarness) -> None:
    harness.create(pod())
    await harness.advance()
    harness.rules.failing(APP)
    await harness.advance()
    broken = harness.get(POD, "web")
    harness.rules.forget(APP)
    await harness.advance()
    mended = harness.get(POD, "web")

    assert waiting_reason(broken) == "CrashLoopBackOff"
    assert read_condition(broken, "Ready") == ("False", "ContainersNotReady")
    assert read_condition(mended, "Ready")[0] == "True"
    assert mended["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_a_rule_that_stops_pulling_leaves_running_pods_alone(harness: ControllerHarness) -> None:
    harness.create(pod())
    await harness.advance()
    harness.rules.never_ready(APP)
    await harness.advance()

    assert read_condition(harness.get(POD, "web"), "Ready")[0] == "True"


async def test_containers_wait_for_the_init_containers(harness: ControllerHarness) -> None:
    harness.create(pod("stuck", initContainers=[{"name": "setup", "image": NEVER_READY}]))
    harness.create(pod("fine", initContainers=[{"name": "setup", "image": APP}]))
    await harness.advance()

    stuck, fine = harness.get(POD, "stuck"), harness.get(POD, "fine")
    assert read_condition(stuck, "Initialized") == ("False", "ContainersNotInitialized")
    assert waiting_reason(stuck) == "PodInitializing"
    assert read_condition(fine, "Ready")[0] == "True"
    assert fine["status"]["initContainerStatuses"][0]["state"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}, "Burstable"),
    ],
)
async def test_the_quality_of_service_follows_the_resources(
    harness: ControllerHarness, resources: Object, expected: str
) -> None:
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = resources
    harness.create(wanted)
    await harness.advance()

    assert harness.get(POD, "web")["status"]["qosClass"] == expected


async def test_a_deleted_pod_is_seen_terminating_and_then_goes(harness: ControllerHarness) -> None:
    harness.create(pod())
    await harness.advance()
    harness.changes.clear()

    harness.delete(POD, "web")
    await harness.advance()

    assert harness.find(POD, "web") is None
    terminating = harness.changes[0].new["metadata"]
    assert harness.changes[0].type == "MODIFIED"
    assert terminating["deletionGracePeriodSeconds"] == 30
    assert harness.changes[-1].type == "DELETED"


async def test_a_pod_waits_for_its_claim(harness: ControllerHarness) -> None:
    harness.create(pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))
    await harness.advance()
    waiting = harness.get(POD, "web")
    harness.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    await harness.advance()

    assert read_condition(waiting, "PodScheduled") == ("False", "Unschedulable")
    assert read_condition(harness.get(POD, "web"), "Ready")[0] == "True"


async def test_a_pod_waits_for_a_node_with_its_labels(harness: ControllerHarness) -> None:
    harness.create(pod(nodeSelector={"disk": "fast"}))
    await harness.advance()
    waiting = harness.get(POD, "web")
    node = harness.api.get(NODE, ObjectKey("", "node-0"))
    node["metadata"]["labels"]["disk"] = "fast"
    harness.api.update(NODE, node)
    await harness.advance()

    assert read_condition(waiting, "PodScheduled") == ("False", "Unschedulable")
    assert read_condition(harness.get(POD, "web"), "Ready")[0] == "True"


async def test_a_pod_of_another_scheduler_is_left_alone(harness: ControllerHarness) -> None:
    harness.create(pod(schedulerName="mine"))
    await harness.advance()

    assert "nodeName" not in harness.get(POD, "web")["spec"]


async def test_a_claim_is_bound_at_once_and_protected_while_it_is_used(harness: ControllerHarness) -> None:
    harness.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default", "finalizers": ["kubernetes.io/pvc-protection"]},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    harness.create(pod(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]))
    await harness.advance()
    bound = harness.get(PERSISTENT_VOLUME_CLAIM, "data")
    harness.delete(PERSISTENT_VOLUME_CLAIM, "data")
    await harness.advance()
    held = harness.find(PERSISTENT_VOLUME_CLAIM, "data")
    harness.delete(POD, "web")
    await harness.advance()

    assert bound["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
    }
    assert bound["spec"]["volumeName"] == f"pvc-{bound['metadata']['uid']}"
    assert held is not None
    assert harness.api.find(PERSISTENT_VOLUME_CLAIM, ObjectKey("default", "data")) is None
