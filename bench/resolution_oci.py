"""How many definitions a second come out of a registry, by digest and by tag, with 1, 8 and 64 asked for at once.

Each is a manifest and a blob of Debian's ``docker-registry`` on the loopback interface, which shares the machine's
cores, and goes the way of a request: through the engine, with checked addresses, digests, the tar and the object read.
Nothing is kept. Every resolution connects anew, since its address is judged anew. The floor is the same two requests
over connections that stay open, with nothing of this but the digests.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator

import aiohttp

from konverge_resolution import Reference
from konverge_resolution.content_cache import CacheMode
from konverge_resolution.engine import EngineOptions
from konverge_resolution.network.concurrency import ConcurrencyLimiter
from tests.resolution.bundles.sample_images import BUNDLE, MANIFEST, WEB, BundleHarness, digest_of
from tests.resolution.servers.docker_registry import DockerRegistry, docker_registry

_SECONDS = 3.0
_AT_ONCE = (1, 8, 64)

Ask = Callable[[], Awaitable[object]]


async def _measure_registry(ask: Ask, at_once: int) -> tuple[float, float, float]:
    """Resolutions a second, and their median and 99th percentile in milliseconds."""
    took: list[float] = []
    end = time.perf_counter() + _SECONDS

    async def work() -> None:
        while (began := time.perf_counter()) < end:
            await ask()
            took.append(time.perf_counter() - began)

    await ask()
    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_once)))
    rate = len(took) / (time.perf_counter() - began)
    hundredths = statistics.quantiles(took, n=100)
    return rate, hundredths[49] * 1000, hundredths[98] * 1000


def _engine(registry: DockerRegistry, tail: str) -> Ask:
    options = EngineOptions(cache_mode=CacheMode.NEVER)
    # The same reference asked for at once would be one fetch: each is of another tenant.
    engine = BundleHarness(registry.name).engine(options=options, bounds=ConcurrencyLimiter(per_server=64, total=64))
    asked = 0

    async def ask() -> None:
        nonlocal asked
        asked += 1
        params = {"bundle": f"{registry.name}/boxes{tail}", "name": "build", "secret": f"number-{asked}"}
        await engine.resolve(Reference("bundles", params), WEB)

    return ask


def _floor(registry: DockerRegistry, session: aiohttp.ClientSession) -> Ask:
    base = f"http://{registry.name}/v2/boxes"

    async def ask() -> None:
        for path, digest in (("manifests", digest_of(BUNDLE[0])), ("blobs", _LAYER)):
            async with session.get(f"{base}/{path}/{digest}", headers={"Accept": f"{MANIFEST}, */*"}) as answer:
                assert f"sha256:{hashlib.sha256(await answer.read()).hexdigest()}" == digest

    return ask


_LAYER = json.loads(BUNDLE[0])["layers"][0]["digest"]


async def _rows(registry: DockerRegistry) -> list[str]:
    rows = []
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64)) as session:
        for at_once in _AT_ONCE:
            floor = 0.0
            for what, ask in (
                ("floor", _floor(registry, session)),
                ("by digest", _engine(registry, f"@{digest_of(BUNDLE[0])}")),
                ("by tag", _engine(registry, ":1")),
            ):
                rate, median, slowest = await _measure_registry(ask, at_once)
                floor = floor or rate
                rows.append(
                    f"bundles, {at_once} at once, {what}: {rate:,.0f}/s, {rate / floor:.2f} of the floor, "
                    f"median {median:.1f} ms, p99 {slowest:.1f} ms"
                )
    return rows


def measure() -> Iterator[str]:
    """The lines of the report."""
    if shutil.which("docker-registry") is None:
        yield "bundles: left out, docker-registry is not installed (make servers installs it)"
        return
    with docker_registry() as registry:
        registry.push("boxes", "1", *BUNDLE)
        yield from asyncio.run(_rows(registry))
