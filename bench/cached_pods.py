"""The memory per cached Pod, as the growth of the process while 10,000 arrive.

The Pods have 5.1 kB, as a real server sends them; a third of that is managed fields. Each case runs several times in
its own process; the output is the median. konverge's cache keeps the metadata as a struct and the rest as bytes. The
peers are the objects that an operator with these libraries keeps after a list.

`python -m bench.cached_pods` prints it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import msgspec

from bench.replay_server import replay_server
from konverge._internal.cache import CacheOptions, InformerFactory
from konverge.client import Client, ClusterConfig, HttpTransport
from konverge.kube import GroupVersionKind

_PODS = 10_000
_RUNS = 5
_POD = GroupVersionKind("", "v1", "Pod")


def _rss() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def _konverge(address: str, options: CacheOptions) -> int:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(HttpTransport(ClusterConfig(server=address, source="the benchmark")))
        )
        informers = await stack.enter_async_context(InformerFactory(client, options={_POD: options}))
        await client.mapping(_POD)
        before = _rss()
        informer = await informers.get_informer(_POD)
        after = _rss()
        assert len(informer.store) == _PODS
    return after - before


async def _konverge_whole(address: str) -> int:
    return await _konverge(address, CacheOptions())


async def _konverge_paged(address: str) -> int:
    return await _konverge(f"{address}/paged", CacheOptions())


async def _konverge_metadata(address: str) -> int:
    return await _konverge(address, CacheOptions(metadata_only=True))


async def _dicts(address: str) -> int:
    async with aiohttp.ClientSession() as session:
        held = []
        token = ""
        before = _rss()
        while True:
            async with session.get(f"{address}/api/v1/pods", params={"limit": "500", "continue": token}) as answer:
                page = msgspec.json.decode(await answer.read())
            held += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                break
        after = _rss()
        assert len(held) == _PODS
    return after - before


async def _lightkube(address: str) -> int:
    from lightkube import AsyncClient
    from lightkube.resources.core_v1 import Pod

    from bench.watch_events import lightkube_configuration

    client = AsyncClient(config=lightkube_configuration(address))
    before = _rss()
    held = [pod async for pod in client.list(Pod, namespace="*")]
    after = _rss()
    assert len(held) == _PODS
    return after - before


_CASES: dict[str, Callable[[str], Awaitable[int]]] = {
    "konverge's cache": _konverge_whole,
    "konverge's cache, from a server without streaming lists": _konverge_paged,
    "konverge's cache, metadata only": _konverge_metadata,
    "lightkube's structs": _lightkube,
    "dicts (msgspec)": _dicts,
}


async def _run(case: str, address: str) -> None:
    grown = await _CASES[case](address)
    peak_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps((grown / _PODS, peak_kilobytes / 1024)))


def measure() -> Iterator[str]:
    """Run the measurement; yield lines for the table."""
    with replay_server(_PODS) as address:
        for case in _CASES:
            runs = []
            for _ in range(_RUNS):
                command = [sys.executable, "-m", "bench.cached_pods", case, address]
                answer = subprocess.run(command, check=True, capture_output=True, text=True)
                runs.append(json.loads(answer.stdout))
            grown, peak = (statistics.median(found) for found in zip(*runs, strict=True))
            yield f"bytes of a held Pod of 5.1 kB, {case}: {grown:,.0f} (peak of the process: {peak:.0f} MB)"


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(_run(sys.argv[1], sys.argv[2]))
    else:
        for line in measure():
            print(line)
