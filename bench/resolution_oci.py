"""The number of definitions per second from a registry, by digest and by tag, with 1, 8 and 64 parallel requests.

Each definition is a manifest and a blob of Debian's ``docker-registry`` on the loopback interface, on the same cores.
It takes the way of a request: the engine, checked addresses, digests, the tar, and the parsed object. No result is
cached. The resolutions of one namespace share open connections, as in a running process; "own connections" is the same
without them. The floor is the same two requests over open connections, with digests only.
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
from konverge_resolution._internal.content_cache import CacheMode
from konverge_resolution._internal.engine import EngineOptions
from konverge_resolution._internal.network.concurrency import ConcurrencyLimiter
from konverge_resolution.network import ConnectionPools
from tests.resolution.bundles.sample_images import BUNDLE, MANIFEST, WEB, BundleHarness, digest_of
from tests.resolution.servers.docker_registry import DockerRegistry, docker_registry

_SECONDS = 3.0
_AT_ONCE = (1, 8, 64)

Ask = Callable[[], Awaitable[object]]


async def _measure_registry(ask: Ask, at_once: int) -> tuple[float, float, float]:
    """Return resolutions per second, and their median and 99th percentile in milliseconds."""
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


def _engine(registry: DockerRegistry, tail: str, pools: ConnectionPools | None = None) -> Ask:
    options = EngineOptions(cache_mode=CacheMode.NEVER)
    # Parallel requests for the same reference would be one fetch: each request has another tenant.
    bounds: ConcurrencyLimiter[str] = ConcurrencyLimiter(per_server=64, total=64)
    engine = BundleHarness(registry.name, pools=pools).engine(options=options, bounds=bounds)
    count = 0

    async def ask() -> None:
        nonlocal count
        count += 1
        params = {"bundle": f"{registry.name}/boxes{tail}", "name": "build", "secret": f"number-{count}"}
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
    by_digest = f"@{digest_of(BUNDLE[0])}"
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=64)) as session,
        ConnectionPools() as pools,
    ):
        for at_once in _AT_ONCE:
            floor = 0.0
            for what, ask in (
                ("floor", _floor(registry, session)),
                ("by digest", _engine(registry, by_digest, pools)),
                ("by tag", _engine(registry, ":1", pools)),
                ("by digest, own connections", _engine(registry, by_digest)),
            ):
                rate, median, slowest = await _measure_registry(ask, at_once)
                floor = floor or rate
                rows.append(
                    f"bundles, {at_once} at once, {what}: {rate:,.0f}/s, {rate / floor:.2f} of the floor, "
                    f"median {median:.1f} ms, p99 {slowest:.1f} ms"
                )
    return rows


def measure() -> Iterator[str]:
    """Run the measurement; yield the lines of the report."""
    if shutil.which("docker-registry") is None:
        yield "bundles: left out, docker-registry is not installed (make servers installs it)"
        return
    with docker_registry() as registry:
        registry.push("boxes", "1", *BUNDLE)
        yield from asyncio.run(_rows(registry))
