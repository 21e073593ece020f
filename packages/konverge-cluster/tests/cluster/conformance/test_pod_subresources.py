"""The subresources of a pod: eviction and logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import POD, new, pod_spec

pytestmark = pytest.mark.anyio

BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")


async def ask(
    cluster: Cluster, method: str, path: str, body: Object | None = None, query: dict[str, str] | None = None
) -> tuple[int, Any]:
    answer = await cluster.new_transport().request(
        method,
        f"/api/v1/namespaces/{cluster.namespace}/pods/{path}",
        query=query or {},
        headers={"content-type": "application/json", "accept": "application/json, */*"},
        body=json.dumps(body).encode() if body is not None else None,
        timeout_seconds=60,
    )
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return answer.status, json.loads(answer.body) if is_json else answer.body


async def running(cluster: Cluster, name: str = "web") -> None:
    """Create a pod and wait until it is ready."""
    pod = new(POD, cluster.namespace, name, metadata={"labels": {"app": "web"}}, spec=pod_spec())
    await cluster.client.create(pod)

    async def is_ready() -> bool:
        found = await cluster.client.get(POD, ObjectKey(cluster.namespace, name))
        conditions = found["status"].get("conditions") or []
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    await cluster.eventually(is_ready, describe="the pod is ready")


async def budget(cluster: Cluster, name: str = "web", **spec: Any) -> Object:
    """Create a budget for those pods and wait for its controller."""
    selector = {"matchLabels": {"app": "web"}}
    await cluster.client.create(new(BUDGET, cluster.namespace, name, spec={"selector": selector, **spec}))

    async def status() -> Object | None:
        found = await cluster.client.get(BUDGET, ObjectKey(cluster.namespace, name))
        return found["status"] if found["status"].get("observedGeneration") else None

    return await cluster.eventually(status, describe="the budget is counted")


def eviction(cluster: Cluster, name: str = "web", **rest: Any) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": cluster.namespace},
        **rest,
    }


async def test_an_evicted_pod_goes(cluster: Cluster) -> None:
    await running(cluster)

    status, body = await ask(cluster, "POST", "web/eviction", eviction(cluster))

    assert (status, body["status"], body["code"]) == (201, "Success", 201)

    async def is_gone() -> bool:
        try:
            await cluster.client.get(POD, ObjectKey(cluster.namespace, "web"))
        except NotFoundError:
            return True
        return False

    await cluster.eventually(is_gone)


async def test_an_eviction_can_be_tried(cluster: Cluster) -> None:
    await running(cluster)

    status, _ = await ask(cluster, "POST", "web/eviction", eviction(cluster, deleteOptions={"dryRun": ["All"]}))

    pod = await cluster.client.get(POD, ObjectKey(cluster.namespace, "web"))
    assert (status, "deletionTimestamp" in pod["metadata"]) == (201, False)


async def test_a_budget_is_counted(cluster: Cluster) -> None:
    await running(cluster, "one")
    await running(cluster, "two")

    status = await budget(cluster, minAvailable=1)

    assert (status["expectedPods"], status["currentHealthy"], status["desiredHealthy"]) == (2, 2, 1)
    assert status["disruptionsAllowed"] == 1
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "DisruptionAllowed",
        "True",
        "SufficientPods",
    )


async def test_a_budget_forbids_an_eviction(cluster: Cluster) -> None:
    await running(cluster)
    await budget(cluster, minAvailable=1)

    status, body = await ask(cluster, "POST", "web/eviction", eviction(cluster))

    assert (status, body["reason"]) == (429, "TooManyRequests")
    assert body["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    (cause,) = body["details"]["causes"]
    assert cause == {
        "reason": "DisruptionBudget",
        "message": "The disruption budget web needs 1 healthy pods and has 1 currently",
    }


async def test_two_budgets_for_one_pod_are_too_many(cluster: Cluster) -> None:
    await running(cluster)
    await budget(cluster, "one", minAvailable=0)
    await budget(cluster, "two", minAvailable=0)

    status, body = await ask(cluster, "POST", "web/eviction", eviction(cluster))

    assert status == 500
    assert body["message"] == (
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
    )


async def test_an_eviction_is_about_the_pod_in_its_path(cluster: Cluster) -> None:
    await running(cluster)

    wrong = await ask(cluster, "POST", "web/eviction", eviction(cluster, "other"))
    absent = await ask(cluster, "POST", "none/eviction", eviction(cluster, "none"))

    assert (wrong[0], wrong[1]["message"]) == (400, "name in URL does not match name in Eviction object")
    assert (absent[0], absent[1]["message"]) == (404, 'pods "none" not found')


async def test_a_log_has_a_container_that_is_there(cluster: Cluster) -> None:
    await running(cluster)

    assert (await ask(cluster, "GET", "web/log", query={"container": "zz"}))[1]["message"] == (
        "container zz is not valid for pod web"
    )
    assert (await ask(cluster, "GET", "none/log"))[1]["message"] == 'pods "none" not found'


async def test_of_several_containers_one_has_to_be_named(cluster: Cluster) -> None:
    spec = {
        "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}],
        "schedulingGates": [{"name": "konverge.test/held"}],
    }
    await cluster.client.create(new(POD, cluster.namespace, "two", spec=spec))

    status, body = await ask(cluster, "GET", "two/log")

    assert (status, body["message"]) == (
        400,
        "a container name must be specified for pod two, choose one of: [a b]",
    )
    assert (await ask(cluster, "GET", "two/log", query={"container": "a"}))[0] == 204


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
    ],
)
async def test_the_numbers_of_a_log_have_their_range(cluster: Cluster, query: dict[str, str], message: str) -> None:
    await running(cluster)

    status, body = await ask(cluster, "GET", "web/log", query=query)

    assert (status, body["message"]) == (422, f'PodLogOptions "web" is invalid: {message}')


@pytest.mark.parametrize(
    ("path", "form", "message"),
    [
        ("/web", "PartialObjectMetadataList", "the requested object is not a list (*core.Pod)"),
        ("", "PartialObjectMetadata", "the requested object is a list (*core.PodList)"),
    ],
)
async def test_a_list_and_an_object_are_not_taken_for_each_other(
    cluster: Cluster, path: str, form: str, message: str
) -> None:
    await cluster.client.create(new(POD, cluster.namespace, "web", spec=pod_spec()))

    answer = await cluster.new_transport().request(
        "GET",
        f"/api/v1/namespaces/{cluster.namespace}/pods{path}",
        headers={"accept": f"application/json;as={form};g=meta.k8s.io;v=v1"},
        timeout_seconds=60,
    )

    assert answer.status == 406
    assert json.loads(answer.body)["message"] == f"you requested {form}, but {message}"


@pytest.mark.parametrize("query", [{"dryRun": "All"}, {}])
async def test_a_dry_run_of_a_binding_binds_nothing(cluster: Cluster, query: dict[str, str]) -> None:
    spec = pod_spec(schedulerName="of-another")
    await cluster.client.create(new(POD, cluster.namespace, "web", spec=spec))
    body: Object = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "absent-node"}}

    status, _ = await ask(cluster, "POST", "web/binding", body, query)

    pod = await cluster.client.get(POD, ObjectKey(cluster.namespace, "web"))
    assert (status, pod["spec"].get("nodeName")) == (201, None if query else "absent-node")
