"""Tekton's own requests, as its documentation shows them, on either cluster."""

import pytest
import yaml

from konverge.kube import find_condition
from konverge_cluster.testing import Cluster
from konverge_resolution import Digest, FetchRequest, Reason, ResolutionError
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from konverge_resolution.requests import TEKTON_REQUEST
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import (
    EMBEDDED,
    RequestNamespace,
    create_request_namespace,
    decode_data,
)
from tests.resolution.test_cluster_resolver import TASK_DEFINITION

pytestmark = pytest.mark.anyio


@pytest.fixture
async def desk(cluster: Cluster) -> RequestNamespace:
    return await create_request_namespace(cluster, with_tekton=True)


async def test_a_request_for_a_task_of_the_cluster_is_resolved_as_by_tekton(desk: RequestNamespace) -> None:
    await desk.cluster.install(TASK_DEFINITION)
    task = {
        "apiVersion": "tekton.dev/v1",
        "kind": "Task",
        "metadata": {"name": "some-task", "namespace": desk.namespace},
        "spec": {"steps": [{"name": "a", "image": "b"}]},
    }
    await desk.cluster.client.create(task)
    params = {"kind": "task", "name": "some-task", "namespace": desk.namespace}
    async with desk.running_resolvers(ClusterResolver(), serves_tekton=True, services_for=None):
        await desk.create_tekton_request("request", "cluster", params)
        request = await desk.wait_until_ended("request", TEKTON_REQUEST)

    status = request["status"]
    assert yaml.safe_load(decode_data(request)) == task
    assert status["refSource"] == status["source"]
    assert status["refSource"]["digest"] == {"sha256": Digest.of(decode_data(request)).hex}
    path = f"/apis/tekton.dev/v1/namespaces/{desk.namespace}/tasks/some-task@"
    assert status["refSource"]["uri"].startswith(path)
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"]) == ("Succeeded", "True")
    assert "reason" not in condition
    assert status["observedGeneration"] == request["metadata"]["generation"]
    assert set(status["annotations"]) == {"resolution.tekton.dev/name", "resolution.tekton.dev/namespace"}
    assert len(desk.status_writes("request")) == 2


async def test_texts_lists_and_mappings_reach_the_resolver_as_they_are(desk: RequestNamespace) -> None:
    params = {"url": "https://a.example/x", "list": ["a", "b"], "object": {"c": "d"}}
    seen = []

    def answer(fetch: FetchRequest, calls: int) -> bytes:
        seen.append(dict(fetch.params))
        return BOX

    async with desk.running_resolvers(FakeResolver(answer), serves_tekton=True):
        await desk.create_tekton_request("request", "shelf", params)
        await desk.wait_until_ended("request", TEKTON_REQUEST)

    assert seen == [params | {"version": "main"}]


@EMBEDDED
async def test_the_concise_form_of_tekton_stands_for_the_parameters(desk: RequestNamespace) -> None:
    home = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "home", "namespace": desk.namespace}}
    await desk.cluster.client.create(home)
    url = f"cluster://{desk.namespace}/configmap/home"
    failures = {}
    async with desk.running_resolvers(ClusterResolver(), serves_tekton=True, services_for=None):
        await desk.create_tekton_request("request", "cluster", {}, url=url)
        found = await desk.wait_until_ended("request", TEKTON_REQUEST)
        for name, params, wrong in (
            ("twice", {"kind": "task"}, url),
            ("other", {}, "git+https://a.example/b#c"),
            ("banana", {}, "banana"),
        ):
            await desk.create_tekton_request(name, "cluster", params, url=wrong)
            failures[name] = (await desk.wait_for_failure(name, TEKTON_REQUEST)).message
    assert yaml.safe_load(decode_data(found))["metadata"]["name"] == "home"
    assert failures["twice"] == "InvalidParams: spec: expected either url or params, found both"
    assert "found one of 'git'" in failures["other"]
    assert failures["banana"].startswith("InvalidParams: spec.url: the concise reference: expected one of the schemes")


@EMBEDDED
async def test_a_failure_has_tektons_reason_for_its_controllers_and_the_precise_one_besides(
    desk: RequestNamespace,
) -> None:
    def answer(fetch: object, calls: int) -> bytes:
        raise ResolutionError(Reason.NOT_FOUND, "there is no such version")

    async with desk.running_resolvers(FakeResolver(answer), serves_tekton=True):
        await desk.create_tekton_request("request", "shelf", {"url": "https://a.example/x"})
        failure = await desk.wait_for_failure("request", TEKTON_REQUEST)
        await desk.create_tekton_request("unserved", "gti", {})
        unserved = await desk.wait_for_failure("unserved", TEKTON_REQUEST, within=2)
        request = await desk.get("request", TEKTON_REQUEST)

    assert (failure.reason, failure.message) == ("ResolutionFailed", "NotFound: there is no such version")
    assert request["status"]["annotations"] == {"resolution.konverge.dev/reason": "NotFound"}
    assert unserved.message.startswith("ResolverNotAvailable: resolver 'gti' is not installed; available: shelf")


@EMBEDDED
async def test_a_request_that_hangs_ends_with_tektons_reason_for_that(desk: RequestNamespace) -> None:
    await desk.set_config_map("konverge-resolution", timeout="2s", attempts="1")
    async with desk.running_resolvers(FakeResolver(), serves_tekton=True):
        await desk.create_tekton_request("request", "shelf", {"url": "https://a.example/x", "seconds": "100"})
        failure = await desk.wait_for_failure("request", TEKTON_REQUEST)

    assert failure.reason == "ResolutionTimedOut"
    assert "2 s" in failure.message


@EMBEDDED
@pytest.mark.parametrize("label", [None, ""])
async def test_a_request_without_a_type_fails_at_once_and_names_the_label(
    desk: RequestNamespace, label: str | None
) -> None:
    async with desk.running_resolvers(FakeResolver(), serves_tekton=True):
        await desk.create_tekton_request("request", label, {})
        failure = await desk.wait_for_failure("request", TEKTON_REQUEST, within=2)

    assert "label resolution.tekton.dev/type: expected the name of a resolver" in failure.message


async def test_content_that_another_resolver_wrote_is_only_declared_resolved(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    await desk.create_tekton_request("request", "shelf", {"url": "https://a.example/x"})
    source = {"uri": "https://a.example/x", "digest": {}}
    status = {"status": {"data": "YQ==", "source": source, "refSource": source}}
    await desk.cluster.client.patch(
        TEKTON_REQUEST, desk.key("request"), status, patch_type="merge", subresource="status"
    )
    async with desk.running_resolvers(shelf, serves_tekton=True):
        request = await desk.wait_until_ended("request", TEKTON_REQUEST)

    assert decode_data(request) == b"a"
    condition = find_condition(request, "Succeeded")
    assert condition is not None
    assert condition.status == "True"
    assert shelf.calls == []
