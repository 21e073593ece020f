from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.cluster.embedded.controllers.controller_harness import (
    APP,
    DAEMON_SET,
    NEVER_READY,
    POD,
    ControllerHarness,
    build_template,
    read_counts,
)

pytestmark = pytest.mark.anyio

NODE = GroupVersionKind("", "v1", "Node")
PARTS = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")


def daemon_set(image: str = APP, **spec: Any) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": build_template("agent", image), **spec},
    }


def image_of(pod: Object) -> str:
    return str(pod["spec"]["containers"][0]["image"])


async def test_one_pod_runs_on_the_node(harness: ControllerHarness) -> None:
    harness.create(daemon_set())
    await harness.advance()

    (pod,) = harness.list_objects(POD)
    found = harness.get(DAEMON_SET, "agent")
    assert read_counts(found, *PARTS) == (1, 1, 1, 1, 1)
    assert read_counts(found, "numberMisscheduled", "numberUnavailable") == (0, 0)
    assert pod["spec"]["nodeName"] == "node-0"
    assert len(pod["spec"]["tolerations"]) >= 6


async def test_a_changed_template_replaces_the_pod(harness: ControllerHarness) -> None:
    harness.create(daemon_set())
    await harness.advance()
    harness.set_image(DAEMON_SET, "agent", "konverge.test/app:2")
    await harness.advance()

    (pod,) = harness.list_objects(POD)
    assert image_of(pod) == "konverge.test/app:2"
    assert read_counts(harness.get(DAEMON_SET, "agent"), *PARTS) == (1, 1, 1, 1, 1)


async def test_an_image_that_never_gets_ready_can_be_replaced(harness: ControllerHarness) -> None:
    harness.create(daemon_set(NEVER_READY))
    await harness.advance()
    stuck = harness.get(DAEMON_SET, "agent")
    harness.set_image(DAEMON_SET, "agent", APP)
    await harness.advance()

    assert read_counts(stuck, "numberReady", "numberUnavailable") == (0, 1)
    assert read_counts(harness.get(DAEMON_SET, "agent"), *PARTS) == (1, 1, 1, 1, 1)


async def test_with_a_surge_the_old_pod_stays_until_the_new_one_is_ready(harness: ControllerHarness) -> None:
    rolling = {"maxSurge": 1, "maxUnavailable": 0}
    harness.create(daemon_set(updateStrategy={"type": "RollingUpdate", "rollingUpdate": rolling}))
    await harness.advance()
    harness.set_image(DAEMON_SET, "agent", "konverge.test/slow:2")
    await harness.advance(1)
    during = sorted(image_of(pod) for pod in harness.list_objects(POD))
    await harness.advance(4)

    assert during == [APP, "konverge.test/slow:2"]
    assert [image_of(pod) for pod in harness.list_objects(POD)] == ["konverge.test/slow:2"]


async def test_on_delete_waits_for_the_pod_to_be_deleted(harness: ControllerHarness) -> None:
    harness.create(daemon_set(updateStrategy={"type": "OnDelete"}))
    await harness.advance()
    harness.set_image(DAEMON_SET, "agent", "konverge.test/app:2")
    await harness.advance()
    (before,) = harness.list_objects(POD)
    harness.delete(POD, before["metadata"]["name"])
    await harness.advance()

    assert image_of(before) == APP
    assert [image_of(pod) for pod in harness.list_objects(POD)] == ["konverge.test/app:2"]


async def test_a_node_that_is_not_selected_has_no_pod_until_it_is(harness: ControllerHarness) -> None:
    wanted = daemon_set()
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    harness.create(wanted)
    await harness.advance()
    before = harness.get(DAEMON_SET, "agent")
    node = harness.api.get(NODE, ObjectKey("", "node-0"))
    node["metadata"]["labels"]["disk"] = "fast"
    harness.api.update(NODE, node)
    await harness.advance()

    assert read_counts(before, *PARTS) == (0, 0, 0, 0, 0)
    assert read_counts(harness.get(DAEMON_SET, "agent"), *PARTS) == (1, 1, 1, 1, 1)
