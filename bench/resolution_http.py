"""The cost of one definition over HTTP on the loopback interface, and the memory for a body of 1 GB.

The peer is plain aiohttp with one connection per request, from the same server in the same run. The values are medians
of many requests in turn; the memory is the growth of the process while the body passes through it.
"""

from __future__ import annotations

import asyncio
import resource
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
from aiohttp import web

from konverge_resolution import Reference
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.resolvers.http import HttpResolver
from tests.resolution.http_resolution import TASK, QuickClock, build_engine
from tests.resolution.network.http_servers import build_guarded_http, serve_site

_TIMES = 200
_HUGE = 1 << 30


def measure() -> Iterator[str]:
    """Run the measurement; yield lines for the table."""
    yield from asyncio.run(_measure_http())


async def _measure_http() -> list[str]:
    async with serve_site(_serve) as url:
        engine, http = build_engine(HttpResolver(), QuickClock()), build_guarded_http()

        async def resolve_definition() -> None:
            # The cache stores nothing here: a URL without a digest can have other content now.
            await engine.resolve(Reference("http", {"url": url}), Requester("web"))

        async def get_body() -> None:
            await http.get(url, max_bytes=1 << 20)

        async def bare() -> None:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                await answer.read()

        by_engine, by_client, peer = await _in_turns(resolve_definition, get_body, bare)
        before = most = resident_bytes()
        started = time.perf_counter()
        async with http.stream(f"{url}/huge", max_bytes=_HUGE) as found:
            async for _ in found.iter_chunks():
                most = max(most, resident_bytes())
        seconds = time.perf_counter() - started
    return [
        f"resolution over http: {by_engine:.2f} ms by the engine, {by_client:.2f} ms by the guarded client; "
        f"bare aiohttp {peer:.2f} ms",
        f"a body of 1 GB in pieces: {(most - before) / 1e6:.1f} MB more memory (at most 50), {seconds:.1f} s",
    ]


async def _in_turns(*asks: Callable[[], Awaitable[None]]) -> list[float]:
    taken: list[list[float]] = [[] for _ in asks]
    for _ in range(_TIMES):
        for ask, times in zip(asks, taken, strict=True):
            started = time.perf_counter()
            await ask()
            times.append(time.perf_counter() - started)
    return [statistics.median(times) * 1000 for times in taken]


async def _serve(request: web.BaseRequest) -> web.StreamResponse:
    if request.path != "/huge":
        return web.Response(body=TASK)
    answer = web.StreamResponse(headers={"Content-Length": str(_HUGE)})
    await answer.prepare(request)
    for _ in range(_HUGE >> 20):
        await answer.write(b"x" * (1 << 20))
    return answer


def resident_bytes() -> int:
    """Return the resident set of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
