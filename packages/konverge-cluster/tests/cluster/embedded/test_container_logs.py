"""The logs of simulated containers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop
from konverge_cluster.embedded import LocalCluster
from tests.cluster.embedded.objects import POD, key, pod

pytestmark = pytest.mark.anyio

LOG = "/api/v1/namespaces/default/pods/web/log"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {"loop_factory": SimulatedLoop}


@pytest.fixture
async def embedded() -> AsyncIterator[LocalCluster]:
    clock = SimulatedClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as running:
        running.api.create(POD, pod())
        await clock.sleep(10)
        yield running


async def text(cluster: LocalCluster, **query: str) -> str:
    answer = await cluster.transport().request("GET", LOG, query=query, timeout_seconds=1)
    return answer.body.decode()


async def test_a_container_says_when_it_started(embedded: LocalCluster) -> None:
    assert await text(embedded) == "app: started konverge.test/app:1\napp: ready\n"
    assert (await text(embedded, timestamps="true")).startswith("2026-01-01T00:00:")


async def test_a_log_can_be_cut(embedded: LocalCluster) -> None:
    assert await text(embedded, tailLines="1") == "app: ready\n"
    assert await text(embedded, tailLines="0") == ""
    assert await text(embedded, limitBytes="3") == "app"
    assert await text(embedded, sinceSeconds="1") == ""


async def test_a_log_that_is_followed_ends_with_its_pod(embedded: LocalCluster) -> None:
    chunks: list[bytes] = []
    query = {"follow": "true"}
    async with embedded.transport().stream("GET", LOG, query=query, connect_timeout_seconds=1) as stream:
        async for chunk in stream.chunks():
            chunks.append(chunk)
            embedded.api.delete(POD, key("web"), grace_seconds=0)

    assert b"".join(chunks) == b"app: started konverge.test/app:1\napp: ready\n"
