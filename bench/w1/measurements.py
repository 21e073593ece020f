"""The measurements of W1, one after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.w1 import floor, program
from bench.w1.bench_cluster import BenchCluster, Readiness, count_by_verb
from bench.w1.measured_process import MeasuredProcess
from bench.w1.parents import new_parent

__all__ = [
    "NewOwnerMeasurement",
    "ProcessMeasurement",
    "measure_flood",
    "measure_floor",
    "measure_operator",
    "measure_until_ready",
    "measure_with_events",
]

_NAMESPACE = "w1"
_PROGRAM = "bench.w1.program"
_WATCHING = frozenset({"list", "watch"})


@dataclass(frozen=True)
class ProcessMeasurement:
    """The work of a process until all parents are Ready, or until it is quiet.

    Args:
        seconds: The duration of this work.
        requests: The requests by verb, without discovery.
        cpu_seconds: The CPU time of this work; in a cold start with the imports.
        peak_megabytes: The largest resident set of the process so far.
    """

    seconds: float
    requests: Counter[str]
    cpu_seconds: float
    peak_megabytes: float

    @property
    def needless(self) -> Counter[str]:
        """The requests that are neither lists nor watches."""
        return Counter({verb: count for verb, count in self.requests.items() if verb not in _WATCHING})


@dataclass(frozen=True)
class NewOwnerMeasurement:
    """The delays of one new parent behind a flood.

    Args:
        flood: The number of parents in the flood.
        first_write_seconds: The time until the first write of a child.
        ready_seconds: The time until the parent is Ready.
        waiting: The number of parents that were not Ready when it was created.
    """

    flood: int
    first_write_seconds: float
    ready_seconds: float
    waiting: int = 0


class _Stopwatch:
    """The start of a measurement of one process: time, CPU time and position in the audit log."""

    def __init__(self, cluster: BenchCluster, subject: MeasuredProcess, user_agent: str) -> None:
        self._cluster = cluster
        self._subject = subject
        self._user_agent = user_agent
        self._position = cluster.position
        self._cpu_seconds = subject.cpu_seconds
        self._begin = time.monotonic()

    @classmethod
    def go(cls, cluster: BenchCluster, subject: MeasuredProcess, user_agent: str) -> Self:
        """Start a program that waits for its signal, and the measurement."""
        stopwatch = cls(cluster, subject, user_agent)
        stopwatch._begin = subject.go()
        return stopwatch

    def stop(self, end: float, *, with_imports: bool = False) -> ProcessMeasurement:
        """Return the measurement of a quiet process that finished its work at a time."""
        requests = [
            request
            for request in self._cluster.requests(self._user_agent, self._position)
            if "/namespaces/" in request.path or request.verb in _WATCHING
        ]
        cpu_seconds = self._subject.cpu_seconds - (0 if with_imports else self._cpu_seconds)
        return ProcessMeasurement(end - self._begin, count_by_verb(requests), cpu_seconds, self._subject.peak_megabytes)


async def measure_floor(count: int) -> ProcessMeasurement:
    """Measure the floor, on its own control plane."""
    async with _cluster_with_parents(count) as cluster:
        return await measure_until_ready(cluster, count, "bench.w1.floor", floor.USER_AGENT)


async def measure_with_events(count: int) -> ProcessMeasurement:
    """Measure a cold start of the operator with recorded events, on its own control plane."""
    async with _cluster_with_parents(count) as cluster:
        return await measure_until_ready(cluster, count, _PROGRAM, program.USER_AGENT, "--events")


async def measure_operator(
    count: int, *, profile: Path | None = None
) -> tuple[ProcessMeasurement, ProcessMeasurement, ProcessMeasurement]:
    """Measure the operator, on its own control plane: a cold start, changes without effect, a restart."""
    async with _cluster_with_parents(count) as cluster:
        async with _running_program(cluster, profile=profile) as (subject, readiness):
            cold = await _measure_cold_start(cluster, subject, readiness, count, program.USER_AGENT)
            stopwatch = _Stopwatch(cluster, subject, program.USER_AGENT)
            await cluster.touch(count, _NAMESPACE)
            touched = stopwatch.stop(await subject.wait_until_quiet())
        async with MeasuredProcess(_PROGRAM, cluster.kubeconfig) as subject:
            stopwatch = _Stopwatch.go(cluster, subject, program.USER_AGENT)
            restarted = stopwatch.stop(await subject.wait_until_quiet())
        return cold, touched, restarted


async def measure_flood(flood: int) -> NewOwnerMeasurement:
    """Measure a parent that is created once the first parent of a flood has a status."""
    async with _cluster_with_parents(flood) as cluster:
        start = cluster.position
        async with _running_program(cluster) as (subject, readiness):
            subject.go()
            await subject.wait_for(readiness.wait_for_first_status())
            waiting = flood - len(readiness.ready_at)
            begin = time.monotonic()
            created = await cluster.client.create(new_parent("fresh", _NAMESPACE))
            ready_seconds = await subject.wait_for(readiness.wait_for_one_ready("fresh")) - begin
        writes = [
            request.time
            for request in cluster.requests(program.USER_AGENT, start)
            if request.verb == "patch" and request.path.endswith("/fresh")
        ]
        created_at = next(
            request.time
            for request in cluster.requests("w1-loader", start)
            if request.verb == "create" and request.path.endswith("/parents")
        )
        assert created["metadata"]["name"] == "fresh"
        return NewOwnerMeasurement(flood, (min(writes) - created_at).total_seconds(), ready_seconds, waiting)


async def measure_until_ready(
    cluster: BenchCluster, count: int, module: str, user_agent: str, *arguments: str
) -> ProcessMeasurement:
    """Measure a cold start of a program over parents that exist.

    Args:
        cluster: The control plane.
        count: The number of its parents, in the namespace ``w1``.
        module: The module of the program; its first argument is the kubeconfig.
        user_agent: The user agent of the program.
        arguments: Further arguments.
    """
    async with _running_program(cluster, *arguments, module=module) as (subject, readiness):
        return await _measure_cold_start(cluster, subject, readiness, count, user_agent)


async def _measure_cold_start(
    cluster: BenchCluster, subject: MeasuredProcess, readiness: Readiness, count: int, user_agent: str
) -> ProcessMeasurement:
    stopwatch = _Stopwatch.go(cluster, subject, user_agent)
    end = await subject.wait_for(readiness.wait_for_all_ready(count))
    await subject.wait_until_quiet()
    return stopwatch.stop(end, with_imports=True)


@asynccontextmanager
async def _cluster_with_parents(count: int) -> AsyncIterator[BenchCluster]:
    async with BenchCluster() as cluster:
        await cluster.load(count, _NAMESPACE)
        yield cluster


@asynccontextmanager
async def _running_program(
    cluster: BenchCluster, *arguments: str, module: str = _PROGRAM, profile: Path | None = None
) -> AsyncIterator[tuple[MeasuredProcess, Readiness]]:
    async with (
        cluster.watching(_NAMESPACE) as readiness,
        MeasuredProcess(module, cluster.kubeconfig, *arguments, profile=profile) as subject,
    ):
        yield subject, readiness
