"""The server over HTTP, in real time."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from konverge.clock import SeededEntropy, SystemClock
from konverge_cluster._internal.embedded.request_bodies import MAXIMUM_BYTES
from konverge_cluster.embedded import LocalCluster
from tests.cancellation_leaks import find_leaks, run_loop_turns
from tests.cluster.embedded.objects import CONFIG_MAP, config_map, key

pytestmark = pytest.mark.anyio

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "asyncio", {}


@pytest.fixture
async def embedded() -> AsyncIterator[LocalCluster]:
    async with LocalCluster(clock=SystemClock(), entropy=SeededEntropy(), controllers=False) as running:
        yield running


@pytest.fixture
async def session(embedded: LocalCluster) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(await embedded.serve()) as opened:
        yield opened


async def test_it_listens_on_loopback_and_serves_once(embedded: LocalCluster) -> None:
    first, second = await embedded.serve(), await embedded.serve()

    assert first == second
    assert first.startswith("http://127.0.0.1:")


async def test_requests_and_answers(session: aiohttp.ClientSession, embedded: LocalCluster) -> None:
    async with session.post(CONFIG_MAPS, json={**config_map(a="1"), "colour": "red"}) as created:
        body, warnings = await created.json(), created.headers.getall("warning")
    async with session.get(f"{CONFIG_MAPS}/none") as missing:
        status = await missing.json()

    assert (created.status, body["data"]) == (201, {"a": "1"})
    assert warnings == ['299 - "unknown field \\"colour\\""']
    assert (missing.status, status["reason"]) == (404, "NotFound")
    assert [entry.code for entry in embedded.requests] == [201, 404]


async def test_a_path_may_be_escaped(session: aiohttp.ClientSession, embedded: LocalCluster) -> None:
    role = {"metadata": {"name": "system:reader"}, "rules": []}
    async with session.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", json=role) as created:
        assert created.status == 201

    async with session.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Areader") as read:
        assert read.status == 200


async def test_a_body_that_is_too_large_is_refused(session: aiohttp.ClientSession) -> None:
    async with session.post(CONFIG_MAPS, data=io.BytesIO(b"x" * (MAXIMUM_BYTES + 2))) as answer:
        body = await answer.json()

    assert (answer.status, body["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize("headers", [{"Origin": "https://example.com"}, {"Host": "rebound.example.com"}])
async def test_a_web_page_is_turned_away(
    session: aiohttp.ClientSession, embedded: LocalCluster, headers: dict[str, str]
) -> None:
    async with session.post(CONFIG_MAPS, json=config_map(), headers=headers) as answer:
        body = await answer.json()

    assert (answer.status, body["reason"]) == (403, "Forbidden")
    assert embedded.api.find(CONFIG_MAP, key("settings")) is None


async def test_a_watch_arrives_line_by_line(session: aiohttp.ClientSession, embedded: LocalCluster) -> None:
    async with asyncio.timeout(10), session.get(f"{CONFIG_MAPS}?watch=1") as answer:
        embedded.api.create(CONFIG_MAP, config_map("a"))
        first = json.loads(await answer.content.readline())
        embedded.api.delete(CONFIG_MAP, key("a"))
        second = json.loads(await answer.content.readline())

    assert answer.headers["content-type"] == "application/json"
    assert [first["type"], second["type"]] == ["ADDED", "DELETED"]


async def test_a_watcher_that_hangs_up_is_forgotten(session: aiohttp.ClientSession, embedded: LocalCluster) -> None:
    subscribers = embedded.api.storage
    async with session.get(f"{CONFIG_MAPS}?watch=1") as answer:
        embedded.api.create(CONFIG_MAP, config_map("a"))
        await answer.content.readline()
        answer.close()

    async with asyncio.timeout(10):
        while subscribers.subscriber_count:
            await SystemClock().sleep(0.01)


async def test_leaving_the_cluster_ends_its_connections() -> None:
    async with aiohttp.ClientSession() as session:
        async with LocalCluster(clock=SystemClock(), entropy=SeededEntropy(), controllers=False) as cluster:
            url = await cluster.serve()
            answer = await session.get(f"{url}{CONFIG_MAPS}?watch=1")

        async with asyncio.timeout(10):
            rest = await answer.content.read()
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(url)

    assert rest == b""


@pytest.mark.parametrize("turns", range(6))
def test_one_who_is_cancelled_while_it_begins_to_serve_leaves_no_port(turns: int) -> None:
    async def cancel() -> None:
        async with LocalCluster(clock=SystemClock(), entropy=SeededEntropy(), controllers=False) as embedded:
            serving = asyncio.create_task(embedded.serve())
            await run_loop_turns(turns)
            serving.cancel()
            await asyncio.wait([serving])

    assert find_leaks(cancel()) == []
