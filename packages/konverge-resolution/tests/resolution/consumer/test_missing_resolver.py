"""What owners are told where nobody fetches: no kind of requests, or nobody who begins them."""

from __future__ import annotations

import pytest

from konverge.crd import crd_manifest
from konverge.kube import Condition, find_condition
from konverge_cluster.testing import Cluster
from konverge_resolution.requests import ResolutionPolicy, ResolutionRequest
from tests.resolution.consumer.consumer_harness import ConsumerHarness, build_consumer_harness
from tests.resolution.fake_resolver import FakeResolver
from tests.resolution.requests.request_namespace import RequestNamespace, create_request_namespace

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)]),
]


async def until_it_says(readers: ConsumerHarness, words: str, *, within: float = 20) -> Condition:
    async def found() -> Condition | None:
        condition = find_condition(await readers.get(), "DefinitionsResolved")
        return condition if condition is not None and words in condition.message else None

    return await readers.desk.cluster.eventually(found, timeout_seconds=within, describe=words)


async def test_without_the_kind_of_requests_the_owner_says_what_installs_it_and_goes_on_when_it_is_there(
    cluster: Cluster,
) -> None:
    readers = await build_consumer_harness(RequestNamespace(cluster))
    async with readers.running(serves=False):
        await readers.create("a", reads={"one": "1"})
        condition = await readers.wait_for_condition(reason="ResolverNotAvailable")
        blocked = await readers.wait_for_condition(condition_type="PagesReady", reason="Blocked")
        await cluster.install(crd_manifest(ResolutionRequest), crd_manifest(ResolutionPolicy))
        async with readers.desk.running_resolvers(FakeResolver()):
            await readers.wait_for_condition(reason="Resolved", within=60)

    assert condition.status == "False"
    for message in (condition.message, blocked.message):
        assert "one: ResolverNotAvailable: the cluster does not serve ResolutionRequest" in message
        assert "konverge resolvers run --install-crds" in message


async def test_of_a_request_that_nobody_begins_the_owner_says_so_after_seconds(cluster: Cluster) -> None:
    readers = await build_consumer_harness(await create_request_namespace(cluster))
    async with readers.running(serves=False):
        await readers.create("a", reads={"one": "1"})
        resolving = await readers.wait_for_condition(reason="Resolving")
        doubted = await until_it_says(readers, "no operator has started the request; check that konverge resolvers run")
        passes = readers.passes
        await cluster.clock.sleep(30)
        assert readers.passes == passes
        async with readers.desk.running_resolvers(FakeResolver()):
            await readers.wait_for_condition(reason="Resolved")

    assert resolving.message == "one: resolving shelf https://a.example/one"
    assert (doubted.status, doubted.reason) == ("Unknown", "Resolving")
    assert doubted.message.endswith(f"serves namespace {cluster.namespace}")


async def test_that_a_request_is_begun_in_time_is_noticed_without_a_request_to_the_server(cluster: Cluster) -> None:
    readers = await build_consumer_harness(await create_request_namespace(cluster))
    async with readers.running(FakeResolver()):
        await readers.create("a", reads={"one": "1"}, seconds="40")
        await readers.wait_for_condition(reason="Resolving")
        await cluster.clock.sleep(5)
        before = len(cluster.list_requests("readers"))
        await cluster.clock.sleep(25)
        assert cluster.list_requests("readers")[before:] == []
        condition = find_condition(await readers.get(), "DefinitionsResolved")
        await readers.wait_for_condition(reason="Resolved")

    assert condition is not None
    assert condition.message == "one: resolving shelf https://a.example/one"
