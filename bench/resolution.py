"""The goals of resolution, one row for each goal with its measurement.

It includes the results of ``resolution_git`` and ``resolution_requests``, and adds measurements with a registry, a
hostile server and an abandoned fetch. Everything is on the loopback interface, with the servers on the same cores.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aiohttp import web

from bench import resolution_git, resolution_requests
from bench.resolution_http import resident_bytes
from konverge_resolution import Reference, ResolutionError
from konverge_resolution._internal.resolvers.http import HttpResolver
from tests.resolution.bundles.sample_images import BUNDLE, WEB, BundleHarness, digest_of
from tests.resolution.git.sample_repositories import build_fetch, list_processes, resolve
from tests.resolution.http_resolution import QuickClock, build_engine
from tests.resolution.network.http_servers import serve_site
from tests.resolution.servers.fake_registry import fake_registry
from tests.resolution.servers.git_faults import fault_server

_AT_ONCE = 200
_MEGABYTE = 1 << 20


async def _registry() -> tuple[str, str]:
    """Count the requests of 200 parallel identical requests to a registry, and of a tag with a known digest."""
    with fake_registry() as registry:
        registry.push("boxes", "1", *BUNDLE)
        by_digest = Reference("bundles", {"bundle": f"{registry.name()}/boxes@{digest_of(BUNDLE[0])}", "name": "build"})
        engine = BundleHarness(registry.name()).engine()
        await asyncio.gather(*(engine.resolve(by_digest, WEB) for _ in range(_AT_ONCE)))
        counts = registry.count("GET", "/manifests/"), registry.count("GET", "/blobs/")
        by_tag = Reference("bundles", {"bundle": f"{registry.name()}/boxes:1", "name": "build"})
        await engine.resolve(by_tag, WEB)
        registry.seen.clear()
        await engine.resolve(by_tag, WEB)
        heads = registry.count("HEAD", "/manifests/")
        others = len(registry.seen) - heads
    return f"{counts[0]} manifest, {counts[1]} blob", f"{heads} HEAD, {others} others"


async def _hostile() -> str:
    """Measure the growth of the process while a server sends a gigabyte."""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        with suppress(ConnectionError):
            for _ in range(1024):
                await answer.write(bytes(_MEGABYTE))
        return answer

    async with serve_site(serve) as url:
        engine = build_engine(HttpResolver(), QuickClock())
        before = resident_bytes()
        try:
            await engine.resolve(Reference("http", {"url": url}), WEB)
        except ResolutionError as error:
            return f"{max(0, resident_bytes() - before) / _MEGABYTE:.1f} MB, {error.reason.value}"
    return "it was let in"


async def _measure_give_up(folder: Path) -> str:
    """Measure the time until a hanging git process is gone after its request was abandoned."""
    with fault_server() as server:
        fetching = asyncio.create_task(resolve(build_fetch(folder, {"url": server.url("hang"), "pathInRepo": "a"})))
        await asyncio.to_thread(server.asked.wait, 10)
        began = time.perf_counter()
        fetching.cancel()
        with suppress(asyncio.CancelledError):
            await fetching
        seconds = time.perf_counter() - began
    return f"{seconds * 1000:.0f} ms, {len(list_processes(folder))} processes left"


def measure() -> Iterator[str]:
    """Yield the lines of the table."""
    git = resolution_git.measure_once()
    requests = resolution_requests.measure_once()
    at_once, tag = asyncio.run(_registry())
    with tempfile.TemporaryDirectory(prefix="konverge-bench-") as folder:
        given_up = asyncio.run(_measure_give_up(Path(folder)))

    def seconds(way: str) -> float:
        return statistics.median(git.seconds[way])

    cold, clone = git.moved["commit, cold"], git.moved["git clone --depth 1"]
    rows = [
        ("pinned file of git, cold, 110 MB", "<= 0.3 s, <= 1 MB",
         f"{seconds('commit, cold'):.3f} s, {cold[1] / 1e6:.2f} MB"),
        ("  git clone --depth 1 in the same run", "",
         f"{seconds('git clone --depth 1'):.3f} s, {clone[1] / 1e6:.0f} MB"),
        ("pinned file of git, warm", "<= 5 ms, 0 requests",
         f"{seconds('commit, again') * 1000:.2f} ms, {git.moved['commit, again'][0]} requests"),
        ("branch of git, warm", "one ls-remote: 2 requests",
         f"{git.moved['branch, its commit known'][0]} requests"),
        ("tag of an image, warm", "one HEAD", tag),
        (f"{_AT_ONCE} identical requests at once", "1 manifest, 1 blob", at_once),
        ("50 good beside 50 of a host that hangs", "< 2 s", f"{requests.good:.2f} s"),
        ("created to content seen, median", "< 100 ms", f"{requests.median_ms:.1f} ms"),
        ("1,000 requests for 100 references", "<= 100 fetches, <= 3 writes each",
         f"{requests.fetches} fetches, {requests.writes:.2f} writes each, {requests.seconds:.2f} s"),
        ("memory under a body of 1 GB", "<= 50 MB", asyncio.run(_hostile())),
        ("given up in mid-fetch: all gone", "<= 2 s", given_up),
    ]  # fmt: skip
    yield f"{'resolution':40} {'goal':34} measured"
    for what, goal, found in rows:
        yield f"{what:40} {goal:34} {found}"
