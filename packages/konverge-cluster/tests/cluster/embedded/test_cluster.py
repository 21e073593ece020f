from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ConnectionFailedError
from konverge.kube import Object
from konverge_cluster.embedded import LocalCluster
from tests.cluster.embedded.objects import DEPLOYMENT, config_map, deployment, key

pytestmark = pytest.mark.anyio

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def embedded() -> AsyncIterator[LocalCluster]:
    async with LocalCluster(clock=SimulatedClock(), entropy=SeededEntropy(), controllers=False) as running:
        yield running


async def test_a_transport_carries_requests_and_answers(embedded: LocalCluster) -> None:
    transport = embedded.transport("me/1.0")
    body = json.dumps(config_map(a="1")).encode()

    created = await transport.request("POST", CONFIG_MAPS, body=body, timeout_seconds=1)
    listed = await transport.request("GET", CONFIG_MAPS, query={"limit": "1"}, timeout_seconds=1)

    assert (created.status, created.headers["content-type"]) == (201, "application/json")
    assert len(json.loads(listed.body)["items"]) == 1
    assert [(entry.user_agent, entry.verb) for entry in embedded.requests] == [("me/1.0", "create"), ("me/1.0", "list")]


async def test_a_request_may_say_its_own_user_agent_and_hear_warnings(embedded: LocalCluster) -> None:
    body = json.dumps({**config_map(), "colour": "red"}).encode()

    answer = await embedded.transport().request(
        "POST", CONFIG_MAPS, headers={"User-Agent": "other/2"}, body=body, timeout_seconds=1
    )

    assert answer.headers["warning"] == '299 - "unknown field \\"colour\\""'
    assert [entry.user_agent for entry in embedded.requests] == ["other/2"]


async def test_a_stream_brings_events_until_it_is_left(embedded: LocalCluster) -> None:
    transport = embedded.transport()
    lines: list[Object] = []

    async with transport.stream("GET", CONFIG_MAPS, query={"watch": "1"}, connect_timeout_seconds=1) as stream:
        embedded.api.create(DEPLOYMENT, deployment())
        await transport.request("POST", CONFIG_MAPS, body=json.dumps(config_map()).encode(), timeout_seconds=1)
        async for chunk in stream.chunks():
            lines += map(json.loads, chunk.splitlines())
            break

    assert stream.status == 200
    assert [line["type"] for line in lines] == ["ADDED"]


async def test_a_stream_that_fails_has_a_body(embedded: LocalCluster) -> None:
    async with embedded.transport().stream(
        "GET", CONFIG_MAPS, query={"watch": "1", "limit": "x"}, connect_timeout_seconds=1
    ) as stream:
        status = json.loads(await stream.body())

    assert (stream.status, status["reason"]) == (400, "BadRequest")


async def test_a_watch_is_no_plain_request(embedded: LocalCluster) -> None:
    with pytest.raises(ConnectionFailedError, match="returned a stream: use stream"):
        await embedded.transport().request("GET", CONFIG_MAPS, query={"watch": "1"}, timeout_seconds=1)


async def test_a_closed_transport_sends_nothing(embedded: LocalCluster) -> None:
    transport = embedded.transport()

    await transport.close()

    with pytest.raises(ConnectionFailedError, match="closed"):
        await transport.request("GET", CONFIG_MAPS, timeout_seconds=1)
    assert len(embedded.requests) == 0


async def test_a_cluster_serves_only_while_it_runs() -> None:
    cluster = LocalCluster(clock=SimulatedClock(), entropy=SeededEntropy())

    with pytest.raises(RuntimeError, match="not running"):
        await cluster.serve()


async def test_leaving_a_cluster_ends_its_watches() -> None:
    async with LocalCluster(clock=SimulatedClock(), entropy=SeededEntropy(), controllers=False) as cluster:
        opened = cluster.transport().stream("GET", CONFIG_MAPS, query={"watch": "1"}, connect_timeout_seconds=1)
        stream = await opened.__aenter__()

    assert [chunk async for chunk in stream.chunks()] == []
    await opened.__aexit__(None, None, None)


async def test_players_bring_a_deployment_up_in_simulated_time() -> None:
    clock = SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster:
        cluster.images.ready_after("slow", 60)
        body = deployment(replicas=2)
        body["spec"]["template"]["spec"]["containers"][0]["image"] = "slow"
        cluster.api.create(DEPLOYMENT, body)

        await clock.sleep(59)
        before = cluster.api.get(DEPLOYMENT, key("web"))["status"].get("readyReplicas", 0)
        await clock.sleep(2)
        after = cluster.api.get(DEPLOYMENT, key("web"))["status"].get("readyReplicas", 0)

    assert (before, after) == (0, 2)


async def test_two_clusters_with_one_seed_are_the_same() -> None:
    async def run_rollout() -> list[str]:
        clock = SimulatedClock()
        async with LocalCluster(clock=clock, entropy=SeededEntropy(7)) as cluster:
            cluster.api.create(DEPLOYMENT, deployment(replicas=2))
            await clock.sleep(30)
            return [repr(change.new) for change in cluster.api.list_changes(0)]

    first, second = await run_rollout(), await run_rollout()

    # The second run begins 30 seconds later on the same loop; nothing else differs.
    assert len(first) == len(second)
    assert [len(line) for line in first] == [len(line) for line in second]
