"""The time until reads of 10,000 Pods are answered from memory, and the longest stall of the event loop.

The floor is a bare list: the same bytes over the same HTTP library, decoded to dicts by the same decoder with the
garbage collector off, and without any order. The cases run in turn, each in its own process, measured by wall-clock
time and by processor time of the process. A stall is the delay of a task that runs every millisecond, beyond that
millisecond; by processor time, it excludes the effect of other processes.

`python -m bench.cold_sync` prints the medians.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass

import aiohttp
import msgspec

from bench.replay_server import replay_server
from konverge._internal.cache import InformerFactory
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.runtime.queue import Queue
from konverge.client import Client, ClusterConfig, HttpTransport
from konverge.clock import SeededEntropy
from konverge.kube import GroupVersionKind, ObjectKey

_PODS = 10_000
_RUNS = 7
_POD = GroupVersionKind("", "v1", "Pod")
_TICK_SECONDS = 0.001


@dataclass
class _Measurement:
    seconds: float = 0.0
    processor_seconds: float = 0.0
    stall_seconds: float = 0.0
    stall_processor_seconds: float = 0.0


async def _tick(figures: _Measurement) -> None:
    while True:
        clock, processor = time.perf_counter(), time.process_time()
        await asyncio.sleep(_TICK_SECONDS)
        figures.stall_seconds = max(figures.stall_seconds, time.perf_counter() - clock - _TICK_SECONDS)
        figures.stall_processor_seconds = max(figures.stall_processor_seconds, time.process_time() - processor)


async def _measure_time(work: Awaitable[object]) -> _Measurement:
    figures = _Measurement()
    ticking = asyncio.create_task(_tick(figures))
    await asyncio.sleep(0.05)
    figures.stall_seconds = figures.stall_processor_seconds = 0.0
    clock, processor = time.perf_counter(), time.process_time()
    await work
    figures.seconds = time.perf_counter() - clock
    figures.processor_seconds = time.process_time() - processor
    await asyncio.sleep(0.05)
    ticking.cancel()
    return figures


async def _konverge(address: str) -> _Measurement:
    queue: Queue[ObjectKey] = Queue(SeededEntropy())

    def on_change(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        if new is not None:
            queue.add(new.key, 0.0)

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client(HttpTransport(ClusterConfig(server=address, source="the benchmark")))
        )
        informers = await stack.enter_async_context(InformerFactory(client))
        informers.subscribe(on_change)
        await client.mapping(_POD)
        figures = await _measure_time(informers.get_informer(_POD))
        assert len(queue) == len(informers.running[_POD].store) == _PODS
    return figures


async def _konverge_paged(address: str) -> _Measurement:
    return await _konverge(f"{address}/paged")


async def _bare_list(address: str) -> _Measurement:
    async def list_once() -> None:
        async with session.get(f"{address}/api/v1/pods") as answer:
            found = msgspec.json.decode(await answer.read())
        assert len(found["items"]) == _PODS

    gc.disable()
    async with aiohttp.ClientSession() as session:
        return await _measure_time(list_once())


async def _bare_pages(address: str) -> _Measurement:
    async def list_once() -> None:
        held = []
        token = ""
        while True:
            async with session.get(f"{address}/api/v1/pods", params={"limit": "500", "continue": token}) as answer:
                page = msgspec.json.decode(await answer.read())
            held += page["items"]
            token = page["metadata"].get("continue", "")
            if not token:
                assert len(held) == _PODS
                return

    gc.disable()
    async with aiohttp.ClientSession() as session:
        return await _measure_time(list_once())


_CASES: dict[str, Callable[[str], Awaitable[_Measurement]]] = {
    "konverge": _konverge,
    "konverge, from a server without streaming lists": _konverge_paged,
    "bare list": _bare_list,
    "bare list, in pages of 500": _bare_pages,
}
_FLOOR = "bare list"


async def _run(case: str, address: str) -> None:
    print(json.dumps(asdict(await _CASES[case](address))))


def _median(found: list[_Measurement]) -> _Measurement:
    columns = zip(*(asdict(one).values() for one in found), strict=True)
    return _Measurement(*map(statistics.median, columns))


def measure() -> Iterator[str]:
    """Run the measurement; yield lines for the table."""
    runs: dict[str, list[_Measurement]] = {case: [] for case in _CASES}
    with replay_server(_PODS) as address:
        for _ in range(_RUNS):
            for case, found in runs.items():
                command = [sys.executable, "-m", "bench.cold_sync", case, address]
                answer = subprocess.run(command, check=True, capture_output=True, text=True)
                found.append(_Measurement(**json.loads(answer.stdout)))
    medians = {case: _median(found) for case, found in runs.items()}
    floor = medians[_FLOOR]
    for case, figures in medians.items():
        yield (
            f"cold sync of {_PODS:,} Pods, {case}: {figures.seconds * 1e3:.0f} ms "
            f"({figures.seconds / floor.seconds:.2f} x the bare list), of processor time "
            f"{figures.processor_seconds * 1e3:.0f} ms ({figures.processor_seconds / floor.processor_seconds:.2f} x); "
            f"longest stall {figures.stall_seconds * 1e3:.0f} ms, "
            f"of processor time {figures.stall_processor_seconds * 1e3:.0f} ms"
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(_run(sys.argv[1], sys.argv[2]))
    else:
        for line in measure():
            print(line)
