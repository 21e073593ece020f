"""The number of watch events per second from the socket to a queue of keys, on one core.

A server on the loopback interface repeats 30,000 changes of 3,000 Pods. The clients run in turn, each in its own
process, and add the key of each changed Pod to konverge's queue. The time runs from the first event to the last.
konverge also keeps every Pod in its cache (complete, or only the metadata); the peers pass events on and keep nothing.

`python -m bench.watch_events` prints the medians: events per second of wall-clock time, and of the client's processor
time; the latter excludes other load on the machine.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.replay_server import replay_server
from konverge._internal.cache import CacheOptions, InformerFactory
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.runtime.queue import Queue
from konverge.client import Client, ClusterConfig, HttpTransport
from konverge.clock import SeededEntropy
from konverge.kube import GroupVersionKind, ObjectKey

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import KubeConfig

_PODS = 3_000
_ROUNDS = 10
_RUNS = 5
_POD = GroupVersionKind("", "v1", "Pod")


class _Sink:
    """The queue, with the times of its first and last change."""

    def __init__(self) -> None:
        self._queue: Queue[ObjectKey] = Queue(SeededEntropy())
        self._missing = _PODS * _ROUNDS
        self._clock = self._processor = 0.0
        self.done = asyncio.Event()
        self.result = (0.0, 0.0)

    def add(self, key: ObjectKey) -> None:
        if self._missing == _PODS * _ROUNDS:
            self._clock, self._processor = time.perf_counter(), time.process_time()
        self._queue.add(key, 0.0)
        self._missing -= 1
        if not self._missing:
            self.result = (time.perf_counter() - self._clock, time.process_time() - self._processor)
            self.done.set()


async def _konverge(address: str, sink: _Sink, options: CacheOptions) -> None:
    def on_change(gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        if old is not None and new is not None:
            sink.add(new.key)

    transport = HttpTransport(ClusterConfig(server=address, source="the benchmark"))
    async with Client(transport) as client, InformerFactory(client, options={_POD: options}) as informers:
        informers.subscribe(on_change)
        await informers.get_informer(_POD)
        await sink.done.wait()


async def _konverge_whole(address: str, sink: _Sink) -> None:
    await _konverge(address, sink, CacheOptions())


async def _konverge_metadata(address: str, sink: _Sink) -> None:
    await _konverge(address, sink, CacheOptions(metadata_only=True))


def lightkube_configuration(address: str) -> KubeConfig:
    """Return the configuration for a server without authentication."""
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.config.models import Cluster, User

    return KubeConfig.from_one(cluster=Cluster(server=address), user=User())


async def _lightkube(address: str, sink: _Sink) -> None:
    from lightkube import AsyncClient
    from lightkube.resources.core_v1 import Pod

    client = AsyncClient(config=lightkube_configuration(address))
    async for _, pod in client.watch(Pod, namespace="*", resource_version="1000000"):
        metadata = pod.metadata
        assert metadata is not None
        sink.add(ObjectKey(metadata.namespace or "", metadata.name or ""))
        if sink.done.is_set():
            return


async def _kubernetes_asyncio(address: str, sink: _Sink) -> None:
    from kubernetes_asyncio import client, watch

    configuration = client.Configuration(host=address)
    async with client.ApiClient(configuration) as api, watch.Watch() as watching:
        core = client.CoreV1Api(api)
        async for event in watching.stream(core.list_pod_for_all_namespaces, resource_version="1000000"):
            metadata = event["object"].metadata
            sink.add(ObjectKey(metadata.namespace, metadata.name))
            if sink.done.is_set():
                return


_CASES: dict[str, Callable[[str, _Sink], Awaitable[None]]] = {
    "konverge, Pods kept whole": _konverge_whole,
    "konverge, metadata kept (PartialObjectMetadata)": _konverge_metadata,
    "lightkube": _lightkube,
    "kubernetes-asyncio": _kubernetes_asyncio,
}


async def _run(case: str, address: str) -> None:
    sink = _Sink()
    await _CASES[case](address, sink)
    print(json.dumps(sink.result))


@dataclass(frozen=True)
class _Rates:
    by_clock: float
    by_processor: float


def _summarize(runs: list[tuple[float, float]]) -> _Rates:
    events = _PODS * _ROUNDS
    return _Rates(
        statistics.median(events / clock for clock, _ in runs),
        statistics.median(events / processor for _, processor in runs),
    )


def measure() -> Iterator[str]:
    """Run the measurement; yield lines for the table."""
    runs: dict[str, list[tuple[float, float]]] = {case: [] for case in _CASES}
    with replay_server(_PODS, rounds=_ROUNDS, settings=0) as address:
        for _ in range(_RUNS):
            for case, found in runs.items():
                command = [sys.executable, "-m", "bench.watch_events", case, address]
                answer = subprocess.run(command, check=True, capture_output=True, text=True)
                found.append(tuple(json.loads(answer.stdout)))
    for case, found in runs.items():
        figures = _summarize(found)
        yield (
            f"watch events from socket to queue, {case}: {figures.by_clock:,.0f} a second by the clock, "
            f"{figures.by_processor:,.0f} by processor time"
        )


if __name__ == "__main__":
    if len(sys.argv) == 3:
        asyncio.run(_run(sys.argv[1], sys.argv[2]))
    else:
        for line in measure():
            print(line)
