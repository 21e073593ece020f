"""The measurements of W1, one after the other."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.w1 import floor, program
from bench.w1.bench_cluster import BenchCluster, count_by_verb
from bench.w1.measured_process import MeasuredProcess
from bench.w1.parents import new_parent

__all__ = [
    "ColdMeasurement",
    "NewOwnerMeasurement",
    "QuietMeasurement",
    "measure_flood",
    "measure_floor",
    "measure_operator",
    "measure_with_events",
]

_NAMESPACE = "w1"
_WATCHING = frozenset({"list", "watch"})


@dataclass(frozen=True)
class ColdMeasurement:
    """All parents from nothing to Ready.

    Args:
        seconds: How long it took.
        requests: By verb, reads of what there is to know of the server (discovery) left out.
        cpu_seconds: Of the process, imports included.
        peak_megabytes: Its resident set.
    """

    seconds: float
    requests: Counter[str]
    cpu_seconds: float
    peak_megabytes: float


@dataclass(frozen=True)
class QuietMeasurement:
    """What happens when nothing is to be done.

    Args:
        seconds: Until the process is quiet.
        requests: By verb, discovery left out.
        cpu_seconds: For it alone.
        peak_megabytes: The resident set of the process so far.
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
    """One new parent behind a flood: how long until its first child is written, and until it is Ready."""

    flood: int
    first_write_seconds: float
    ready_seconds: float
    waiting: int = field(default=0)


async def measure_floor(count: int) -> ColdMeasurement:
    """The floor, on a control plane of its own."""
    async with BenchCluster() as stage:
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            MeasuredProcess("bench.w1.floor", stage.kubeconfig) as subject,
        ):
            begin = subject.go()
            end = await subject.wait_for(readiness.wait_for_all_ready(count))
            cpu_seconds, peak = subject.cpu_seconds, subject.peak_megabytes
        return ColdMeasurement(end - begin, _requests(stage, floor.USER_AGENT, start), cpu_seconds, peak)


async def measure_operator(
    count: int, *, profile: Path | None = None
) -> tuple[ColdMeasurement, QuietMeasurement, QuietMeasurement]:
    """The operator, on a control plane of its own: cold, touched without effect, started again."""
    async with BenchCluster() as stage:
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            MeasuredProcess("bench.w1.program", stage.kubeconfig, profile=profile) as subject,
        ):
            begin = subject.go()
            end = await subject.wait_for(readiness.wait_for_all_ready(count))
            await subject.wait_until_quiet()
            cold = ColdMeasurement(
                end - begin,
                _requests(stage, program.USER_AGENT, start),
                subject.cpu_seconds,
                subject.peak_megabytes,
            )
            before, start, begin = subject.cpu_seconds, stage.position, time.monotonic()
            await stage.touch(count, _NAMESPACE)
            end = await subject.wait_until_quiet()
            touched = QuietMeasurement(
                end - begin,
                _requests(stage, program.USER_AGENT, start),
                subject.cpu_seconds - before,
                subject.peak_megabytes,
            )
        start = stage.position
        async with MeasuredProcess("bench.w1.program", stage.kubeconfig) as subject:
            before = subject.cpu_seconds
            begin = subject.go()
            end = await subject.wait_until_quiet()
            restarted = QuietMeasurement(
                end - begin,
                _requests(stage, program.USER_AGENT, start),
                subject.cpu_seconds - before,
                subject.peak_megabytes,
            )
        return cold, touched, restarted


async def measure_with_events(count: int) -> ColdMeasurement:
    """The operator that records events besides, on a control plane of its own: cold."""
    async with BenchCluster() as stage:
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            MeasuredProcess("bench.w1.program", stage.kubeconfig, "--events") as subject,
        ):
            begin = subject.go()
            end = await subject.wait_for(readiness.wait_for_all_ready(count))
            await subject.wait_until_quiet()
            cpu_seconds, peak = subject.cpu_seconds, subject.peak_megabytes
        return ColdMeasurement(end - begin, _requests(stage, program.USER_AGENT, start), cpu_seconds, peak)


async def measure_flood(flood: int) -> NewOwnerMeasurement:
    """A start over so many parents that all want their children, and one that is created once the first is served."""
    async with BenchCluster() as stage:
        await stage.load(flood, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            MeasuredProcess("bench.w1.program", stage.kubeconfig) as subject,
        ):
            subject.go()
            await subject.wait_for(readiness.wait_for_first_status())
            waiting = flood - len(readiness.ready_at)
            begin = time.monotonic()
            created = await stage.client.create(new_parent("fresh", _NAMESPACE))
            ready_seconds = await subject.wait_for(readiness.wait_for_one_ready("fresh")) - begin
        writes = [
            found.time
            for found in stage.requests(program.USER_AGENT, start)
            if found.verb == "patch" and found.path.endswith("/fresh")
        ]
        created_at = next(
            found.time
            for found in stage.requests("w1-loader", start)
            if found.verb == "create" and found.path.endswith("/parents")
        )
        assert created["metadata"]["name"] == "fresh"
        return NewOwnerMeasurement(flood, (min(writes) - created_at).total_seconds(), ready_seconds, waiting)


def _requests(stage: BenchCluster, user_agent: str, start: int) -> Counter[str]:
    return count_by_verb(
        [
            found
            for found in stage.requests(user_agent, start)
            if "/namespaces/" in found.path or found.verb in ("list", "watch")
        ]
    )
