"""The process that `konverge resolvers run` is: how it is killed, how it ends, what it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge.clock import SystemClock
from tests.resolution.git.sample_repositories import list_files, list_processes
from tests.resolution.network.http_servers import serve_site
from tests.resolution.requests.request_namespace import (
    EMBEDDED,
    RequestNamespace,
    create_request_namespace,
    decode_data,
)
from tests.resolution.resolver_process import resolver_process
from tests.resolution.servers.git_faults import fault_server
from tests.resolution.source_servers import FILE
from tests.resolution.test_cluster_configuration import ask

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

MEGABYTE = 1 << 20


@pytest.fixture
async def desk(cluster: Any) -> RequestNamespace:
    return await create_request_namespace(cluster, with_tekton=True)


async def until(holds: Callable[[], bool]) -> None:
    clock = SystemClock()
    ends = clock.monotonic() + 20
    while not holds():
        assert clock.monotonic() < ends
        await clock.sleep(0.02)


@pytest.mark.slow
@EMBEDDED
async def test_a_process_that_is_killed_in_the_middle_of_a_fetch_leaves_nothing_and_the_request_ends(
    desk: RequestNamespace, tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    await desk.set_config_map("konverge-resolution", timeout="6s", attempts="1")
    with fault_server() as faults:
        params = {"url": faults.url("hang").replace("git.test", "127.0.0.1"), "pathInRepo": "a.yaml"}
        async with desk.policy("loopback", privateNetworks=["127.0.0.0/8"]):
            async with resolver_process(desk, "git", folder) as first:
                await ask(desk, "a", "git", params)
                await until(faults.asked.is_set)
                assert any("remote-http" in command for command in list_processes(folder))
                await first.kill()
            await until(lambda: not list_processes(folder))
            left = list_files(folder)
            async with resolver_process(desk, "git", folder) as second:
                failure = await desk.wait_for_failure("a", within=20)
                assert await second.terminate() == 0

    assert failure.reason == "TimedOut"
    assert "lock" in left
    assert list_files(folder) == []


@pytest.mark.slow
@EMBEDDED
async def test_a_gigabyte_of_content_is_refused_without_being_held(desk: RequestNamespace, tmp_path: Path) -> None:
    sent = 0

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        if request.path == "/small":
            return web.Response(body=FILE)
        answer = web.StreamResponse()
        await answer.prepare(request)
        try:
            while sent < 1024 * MEGABYTE:
                await answer.write(bytes(MEGABYTE))
                sent += MEGABYTE
        except ConnectionError:
            pass  # whoever asked has closed the connection without a response
        return answer

    async with (
        serve_site(serve) as url,
        desk.policy("loopback", privateNetworks=["127.0.0.0/8"]),
        resolver_process(desk, "http", tmp_path / "temporary") as process,
    ):
        await ask(desk, "small", "http", {"url": f"{url}/small"})
        assert decode_data(await desk.wait_until_ended("small")) == FILE
        before = process.peak_memory
        await ask(desk, "large", "http", {"url": f"{url}/large"})
        failure = await desk.wait_for_failure("large")
        growth = process.peak_memory - before

    assert failure.reason == "TooLarge"
    assert growth <= 50 * MEGABYTE
    assert sent <= 50 * MEGABYTE
