"""Requests whose process is starting, and a request beside the flood of another namespace."""

from __future__ import annotations

import asyncio

import pytest

from konverge.operator import RunOptions
from konverge_resolution._internal.requests.resolver_packaging import ResolverPackaging, package_resolvers
from konverge_resolution.requests import REQUEST
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import EMBEDDED, RequestNamespace, decode_data

pytestmark = pytest.mark.anyio


@EMBEDDED
async def test_a_request_waits_for_an_installed_resolver_whose_process_is_starting(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("early", "hub")
        await desk.wait_until_pending("early")
        await desk.cluster.clock.sleep(20)
        async with desk.running_resolvers(FakeResolver(name="hub"), name="hub-resolution", keeps_lifecycle=False):
            assert decode_data(await desk.wait_until_ended("early", within=5)) == BOX


@EMBEDDED
async def test_a_request_whose_process_never_starts_ends_in_time_and_names_the_cause(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("early", "hub")
        failure = await desk.wait_for_failure("early", within=62)
        # The first minute of this process is over: nothing is expected any more.
        await desk.create_request("late", "hub")
        late = await desk.wait_for_failure("late", within=2)

    assert failure.reason == "TimedOut"
    assert "no process serves it: resolver 'hub' is not installed; available: shelf" in failure.message
    assert late.reason == "ResolverNotAvailable"


@EMBEDDED
async def test_a_misspelled_resolver_is_refused_at_once_while_processes_start(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a", "hbu")
        assert (await desk.wait_for_failure("a", within=2)).reason == "ResolverNotAvailable"


async def test_the_manifests_of_a_process_announce_its_resolvers_before_it_starts(desk: RequestNamespace) -> None:
    attic = FakeResolver(name="attic")
    packaging = ResolverPackaging("image", name="attic-resolution", home=desk.namespace, keeps_lifecycle=False)
    (lease,) = [obj for obj in package_resolvers([attic], packaging) if obj["kind"] == "Lease"]
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("unknown", "attic")
        refused = await desk.wait_for_failure("unknown", within=2)
        await desk.cluster.client.create(lease)
        await desk.cluster.clock.sleep(1)  # the watch delivers the Lease
        await desk.create_request("early", "attic")
        await desk.wait_until_pending("early")
        async with desk.running_resolvers(attic, name="attic-resolution", keeps_lifecycle=False):
            assert decode_data(await desk.wait_until_ended("early", within=5)) == BOX

    assert refused.reason == "ResolverNotAvailable"


@pytest.mark.slow
@EMBEDDED
async def test_a_request_does_not_wait_for_hundreds_of_another_namespace(desk: RequestNamespace) -> None:
    client, quiet = desk.cluster.client, f"{desk.namespace}-quiet"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": quiet}})
    await asyncio.gather(*(desk.create_request(f"flood-{number}") for number in range(300)))
    await client.create(
        {
            "apiVersion": REQUEST.api_version,
            "kind": REQUEST.kind,
            "metadata": {"name": "last", "namespace": quiet},
            "spec": {"resolver": "shelf", "params": {"url": "https://a.example/last"}},
        }
    )
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf, options=RunOptions(namespaces=(desk.namespace, quiet))):
        await desk.cluster.eventually(lambda: len(shelf.calls) == 301, describe="all are fetched")

    assert [url for _, url in shelf.calls].index("https://a.example/last") < 30
