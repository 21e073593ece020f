"""Pods that the node cannot run are not scheduled, with the reason in their condition."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import IMAGE, POD, new, pod_spec

pytestmark = pytest.mark.anyio

REST = "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."


def requesting(**requests: str) -> Object:
    resources: Object = {"requests": requests}
    if "example.com/gpu" in requests:
        resources["limits"] = requests
    return {"containers": [{"name": "app", "image": IMAGE, "resources": resources}]}


def affinity(operator: str, *values: str) -> Object:
    expression: dict[str, Any] = {"key": "konverge.test/absent", "operator": operator}
    if values:
        expression["values"] = list(values)
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return pod_spec(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})


async def until_decided(cluster: Cluster, spec: Object) -> Object:
    """Create a pod and return its condition ``PodScheduled`` as soon as there is one."""
    await cluster.client.create(new(POD, cluster.namespace, "one", spec=spec))

    async def decided() -> Object | None:
        pod = await cluster.client.get(POD, ObjectKey(cluster.namespace, "one"))
        conditions = pod.get("status", {}).get("conditions", ())
        return next((each for each in conditions if each["type"] == "PodScheduled"), None)

    return await cluster.eventually(decided, describe="the scheduler decides")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (requesting(cpu="100k"), "1 Insufficient cpu"),
        (requesting(memory="100Ti"), "1 Insufficient memory"),
        (requesting(memory="100Ti", cpu="100k"), "1 Insufficient cpu, 1 Insufficient memory"),
        (requesting(**{"example.com/gpu": "1"}), "1 Insufficient example.com/gpu"),
        (affinity("In", "here"), "1 node(s) didn't match Pod's node affinity/selector"),
        (affinity("Exists"), "1 node(s) didn't match Pod's node affinity/selector"),
    ],
)
async def test_a_pod_that_does_not_fit_stays_without_a_node(cluster: Cluster, spec: Object, reason: str) -> None:
    condition = await until_decided(cluster, spec)

    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == f"0/1 nodes are available: {reason}. {REST}"


@pytest.mark.parametrize("spec", [requesting(cpu="1", memory="1Gi"), affinity("DoesNotExist"), affinity("NotIn", "x")])
async def test_a_pod_that_fits_gets_the_node(cluster: Cluster, spec: Object) -> None:
    assert (await until_decided(cluster, spec))["status"] == "True"


async def test_a_pod_is_scheduled_when_another_one_leaves(cluster: Cluster) -> None:
    whole = requesting(cpu="1k")
    await cluster.client.create(new(POD, cluster.namespace, "first", spec=whole))

    async def is_scheduled(name: str) -> bool:
        pod = await cluster.client.get(POD, ObjectKey(cluster.namespace, name))
        return bool(pod["spec"].get("nodeName"))

    await cluster.eventually(lambda: is_scheduled("first"))
    assert (await until_decided(cluster, whole))["message"].startswith("0/1 nodes are available: 1 Insufficient cpu")

    await cluster.client.delete(POD, ObjectKey(cluster.namespace, "first"))

    await cluster.eventually(lambda: is_scheduled("one"))
