"""What the server makes of a new pod: gates, priority and runtime classes, and its quality-of-service class."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from konverge.errors import ForbiddenError, InvalidError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import IMAGE, POD, new, pod_spec

pytestmark = pytest.mark.anyio

PRIORITY_CLASS = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
RUNTIME_CLASS = GroupVersionKind("node.k8s.io", "v1", "RuntimeClass")
KEPT = {"key": "kept", "operator": "Exists"}
GATES = [{"name": "konverge.test/one"}, {"name": "konverge.test/two"}]


class Pods:
    """The pods of one test, and cluster-scoped classes with names of their own."""

    def __init__(self, cluster: Cluster, closing: AsyncExitStack) -> None:
        self._cluster = cluster
        self._closing = closing
        self.key = ObjectKey(cluster.namespace, "one")

    async def create(self, *, dry_run: bool = False, **spec: Any) -> Object:
        wanted = new(POD, self._cluster.namespace, "one", spec=pod_spec(**spec))
        return await self._cluster.client.create(wanted, dry_run=dry_run)

    async def add_class(self, gvk: GroupVersionKind, name: str, **fields: Any) -> str:
        """Create a class and wait until the server uses it."""
        full_name = f"{self._cluster.namespace}-{name}"
        body: Object = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": full_name}, **fields}
        await self._cluster.client.create(body)
        self._closing.push_async_callback(self._cluster.client.delete, gvk, ObjectKey("", full_name))
        return full_name

    async def refusal(self, **spec: Any) -> str:
        with pytest.raises(ForbiddenError) as refused:
            await self.create(dry_run=True, **spec)
        return refused.value.message

    async def until(self, check: Any, describe: str) -> Any:
        return await self._cluster.eventually(check, describe=describe)


@pytest.fixture
async def pods(cluster: Cluster) -> AsyncIterator[Pods]:
    async with AsyncExitStack() as closing:
        yield Pods(cluster, closing)


# Scheduling gates


async def test_a_gated_pod_reports_that_it_is_not_scheduled(pods: Pods, cluster: Cluster) -> None:
    created = await pods.create(schedulingGates=GATES)

    (condition,) = created["status"]["conditions"]
    condition = {name: value for name, value in condition.items() if name != "lastTransitionTime"}
    assert {name: value for name, value in condition.items() if value is not None} == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }
    found = await cluster.client.get(POD, pods.key)
    assert "nodeName" not in found["spec"]


async def test_a_pod_is_scheduled_when_its_last_gate_is_removed(pods: Pods, cluster: Cluster) -> None:
    await pods.create(schedulingGates=GATES)

    await cluster.client.patch(POD, pods.key, {"spec": {"schedulingGates": GATES[1:]}}, patch_type="merge")
    await cluster.client.patch(POD, pods.key, {"spec": {"schedulingGates": []}}, patch_type="merge")

    async def is_scheduled() -> Object | None:
        pod = await cluster.client.get(POD, pods.key)
        return pod if pod["spec"].get("nodeName") else None

    pod = await pods.until(is_scheduled, "the pod is scheduled")
    (condition,) = [entry for entry in pod["status"]["conditions"] if entry["type"] == "PodScheduled"]
    assert (condition["status"], condition.get("reason")) == ("True", None)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"schedulingGates": [*GATES, {"name": "konverge.test/three"}]}, ["spec.schedulingGates[2].name"]),
        ({"schedulingGates": [{"name": "konverge.test/other"}]}, ["spec.schedulingGates[0].name"]),
        ({"nodeSelector": {"a": "b"}}, []),
        ({"nodeSelector": {"kept": None}}, ["spec.nodeSelector"]),
        ({"nodeSelector": {"kept": "changed"}}, ["spec.nodeSelector"]),
        ({"tolerations": []}, ["spec.tolerations"]),
        ({"tolerations": [KEPT, {"key": "added", "operator": "Exists"}]}, []),
        ({"hostNetwork": True}, ["spec"]),
        ({"activeDeadlineSeconds": 10}, []),
    ],
)
async def test_a_gated_pod_takes_certain_changes(
    pods: Pods, cluster: Cluster, spec: dict[str, Any], fields: list[str]
) -> None:
    await pods.create(schedulingGates=GATES, nodeSelector={"kept": "x"}, tolerations=[KEPT])
    found: list[str] = []

    try:
        await cluster.client.patch(POD, pods.key, {"spec": spec}, patch_type="merge")
    except InvalidError as error:
        found = sorted({cause.field for cause in error.causes})

    assert found == fields


async def test_gates_cannot_be_added_later(pods: Pods, cluster: Cluster) -> None:
    await pods.create(schedulerName="nobody")

    with pytest.raises(InvalidError) as refused:
        await cluster.client.patch(POD, pods.key, {"spec": {"schedulingGates": GATES[:1]}}, patch_type="merge")

    causes = {cause.field: cause.message for cause in refused.value.causes}
    expected = "Forbidden: only deletion is allowed, but found new scheduling gate 'konverge.test/one'"
    assert causes["spec.schedulingGates[0].name"] == expected


async def test_a_gated_pod_is_not_assigned_to_a_node(pods: Pods, cluster: Cluster) -> None:
    with pytest.raises(InvalidError) as refused:
        await pods.create(schedulingGates=GATES, nodeName="node-0", dry_run=True)
    assert [cause.field for cause in refused.value.causes] == ["spec.nodeName"]
    await pods.create(schedulingGates=GATES)

    response = await cluster.new_transport().request(
        "POST",
        f"/api/v1/namespaces/{cluster.namespace}/pods/one/binding",
        headers={"content-type": "application/json", "accept": "application/json"},
        body=json.dumps({"metadata": {"name": "one"}, "target": {"kind": "Node", "name": "node-0"}}).encode(),
        timeout_seconds=60,
    )

    assert (response.status, json.loads(response.body)["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "one": pod one has non-empty .spec.schedulingGates',
    )


# Priority classes


async def test_a_pod_gets_the_priority_of_its_class(pods: Pods) -> None:
    name = await pods.add_class(PRIORITY_CLASS, "high", value=1000, preemptionPolicy="Never")

    pod = await pods.create(dry_run=True, priorityClassName=name)

    assert (pod["spec"]["priority"], pod["spec"]["preemptionPolicy"]) == (1000, "Never")


async def test_a_default_class_is_added_to_pods_that_name_none(pods: Pods) -> None:
    name = await pods.add_class(PRIORITY_CLASS, "default", value=7, globalDefault=True)

    async def uses_default() -> Object | None:
        pod = await pods.create(dry_run=True)
        return pod if pod["spec"].get("priorityClassName") else None

    pod = await pods.until(uses_default, "the default class is used")
    assert (pod["spec"]["priorityClassName"], pod["spec"]["priority"]) == (name, 7)
    with pytest.raises(ForbiddenError) as refused:
        await pods.add_class(PRIORITY_CLASS, "other", value=8, globalDefault=True)
    assert refused.value.message.endswith(
        f"PriorityClass {name} is already marked as default. Only one default can exist"
    )


async def test_the_priority_of_a_pod_is_that_of_its_class(pods: Pods) -> None:
    name = await pods.add_class(PRIORITY_CLASS, "high", value=1000)

    assert await pods.refusal(priorityClassName=name, priority=5) == (
        'pods "one" is forbidden: the integer value of priority (5) must not be provided in pod spec; '
        "priority admission controller computed 1000 from the given PriorityClass name"
    )
    assert await pods.refusal(priorityClassName="absent") == (
        'pods "one" is forbidden: no PriorityClass with name absent was found'
    )


@pytest.mark.parametrize(
    ("name", "fields", "error"),
    [
        ("x", {"value": 2_000_000_000}, "value"),
        ("system-x", {"value": 1}, "metadata.name"),
        ("x", {"value": 1, "preemptionPolicy": "Sometimes"}, "preemptionPolicy"),
    ],
)
async def test_a_priority_class_is_validated(cluster: Cluster, name: str, fields: dict[str, Any], error: str) -> None:
    body: Object = {"apiVersion": PRIORITY_CLASS.api_version, "kind": "PriorityClass", "metadata": {"name": name}}

    with pytest.raises(InvalidError) as refused:
        await cluster.client.create({**body, **fields}, dry_run=True)

    assert [cause.field for cause in refused.value.causes] == [error]


@pytest.mark.parametrize(("change", "fields"), [({"value": 2}, ["value"]), ({"description": "x"}, [])])
async def test_the_value_of_a_priority_class_stays(
    pods: Pods, cluster: Cluster, change: Object, fields: list[str]
) -> None:
    name = await pods.add_class(PRIORITY_CLASS, "high", value=1)
    found: list[str] = []

    try:
        await cluster.client.patch(PRIORITY_CLASS, ObjectKey("", name), change, patch_type="merge")
    except InvalidError as error:
        found = [cause.field for cause in error.causes]

    assert found == fields


async def test_the_priority_classes_of_the_system_exist(cluster: Cluster) -> None:
    found = await cluster.client.list(PRIORITY_CLASS)

    classes = {item["metadata"]["name"]: item["value"] for item in found.items}
    assert classes["system-cluster-critical"] == 2_000_000_000
    assert classes["system-node-critical"] == 2_000_001_000


# Runtime classes


async def test_a_pod_gets_the_overhead_and_the_nodes_of_its_runtime_class(pods: Pods) -> None:
    name = await pods.add_class(
        RUNTIME_CLASS,
        "vm",
        handler="vm",
        overhead={"podFixed": {"cpu": "100m"}},
        scheduling={"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]},
    )

    pod = await pods.create(dry_run=True, runtimeClassName=name, nodeSelector={"a": "b"})

    assert pod["spec"]["overhead"] == {"cpu": "100m"}
    assert pod["spec"]["nodeSelector"] == {"a": "b", "vm": "yes"}
    assert {"key": "vm", "operator": "Exists"} in pod["spec"]["tolerations"]


async def test_a_pod_must_not_contradict_its_runtime_class(pods: Pods) -> None:
    name = await pods.add_class(
        RUNTIME_CLASS,
        "vm",
        handler="vm",
        overhead={"podFixed": {"cpu": "100m"}},
        scheduling={"nodeSelector": {"vm": "yes"}},
    )

    assert await pods.refusal(runtimeClassName=name, overhead={"cpu": "1"}) == (
        "pods \"one\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    )
    assert await pods.refusal(runtimeClassName=name, nodeSelector={"vm": "no"}) == (
        'pods "one" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; '
        "pod.spec.nodeSelector[vm] = no"
    )
    assert await pods.refusal(runtimeClassName="absent") == (
        'pods "one" is forbidden: pod rejected: RuntimeClass "absent" not found'
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"handler": ""}, "handler"),
        ({"handler": "A_B"}, "handler"),
        ({"handler": "x", "scheduling": {"nodeSelector": {"a": "b c"}}}, "scheduling.nodeSelector"),
        (
            {"handler": "x", "scheduling": {"tolerations": [{"operator": "Sometimes"}]}},
            "scheduling.tolerations[0].operator",
        ),
    ],
)
async def test_a_runtime_class_is_validated(cluster: Cluster, fields: dict[str, Any], error: str) -> None:
    body: Object = {"apiVersion": RUNTIME_CLASS.api_version, "kind": "RuntimeClass", "metadata": {"name": "x"}}

    with pytest.raises(InvalidError) as refused:
        await cluster.client.create({**body, **fields}, dry_run=True)

    assert {cause.field for cause in refused.value.causes} == {error}


async def test_the_handler_of_a_runtime_class_stays(pods: Pods, cluster: Cluster) -> None:
    name = await pods.add_class(RUNTIME_CLASS, "vm", handler="vm")

    with pytest.raises(InvalidError) as refused:
        await cluster.client.patch(RUNTIME_CLASS, ObjectKey("", name), {"handler": "other"}, patch_type="merge")

    assert [(cause.field, cause.reason) for cause in refused.value.causes] == [("handler", "FieldValueInvalid")]


# Quality of service


def resources(requests: str = "", limits: str = "") -> Object:
    """Return resources from texts of the form ``cpu=1 memory=1Gi``."""
    parts = {"requests": requests, "limits": limits}
    return {name: dict(pair.split("=") for pair in text.split()) for name, text in parts.items() if text}


BOTH = "cpu=1 memory=1Gi"


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([resources()], "BestEffort"),
        ([resources("cpu=0", "memory=0")], "BestEffort"),
        ([resources("example.com/gpu=1", "example.com/gpu=1")], "BestEffort"),
        ([resources("cpu=1")], "Burstable"),
        ([resources("", "cpu=1")], "Burstable"),
        ([resources("", BOTH)], "Guaranteed"),
        ([resources("cpu=1000m memory=1024Mi", BOTH)], "Guaranteed"),
        ([resources("cpu=999m", BOTH)], "Burstable"),
        ([resources("cpu=0", BOTH)], "Burstable"),
        ([resources(BOTH, BOTH), resources()], "Burstable"),
        ([resources(BOTH, BOTH), resources(BOTH, BOTH)], "Guaranteed"),
    ],
)
async def test_the_class_of_a_pod_follows_from_its_resources(
    cluster: Cluster, containers: list[Object], expected: str
) -> None:
    entries = [{"name": f"c{index}", "image": IMAGE, "resources": each} for index, each in enumerate(containers)]

    pod = await cluster.client.create(new(POD, cluster.namespace, "one", spec={"containers": entries}), dry_run=True)

    assert pod["status"]["qosClass"] == expected
