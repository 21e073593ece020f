"""The measurements of W1, one after the other."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.w1 import floor, program
from bench.w1.parents import new_parent
from bench.w1.stage import Stage, by_verb
from bench.w1.subject import Subject

__all__ = ["Cold", "Fresh", "Quiet", "measure_flood", "measure_floor", "measure_operator", "measure_with_events"]

_NAMESPACE = "w1"
_WATCHING = frozenset({"list", "watch"})


@dataclass(frozen=True)
class Cold:
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
class Quiet:
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
class Fresh:
    """One new parent behind a flood: how long until its first child is written, and until it is Ready."""

    flood: int
    first_write_seconds: float
    ready_seconds: float
    waiting: int = field(default=0)


async def measure_floor(count: int) -> Cold:
    """The floor, on a control plane of its own."""
    async with Stage() as stage:
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            Subject("bench.w1.floor", stage.kubeconfig) as subject,
        ):
            begin = subject.go()
            end = await subject.until(readiness.all_ready(count))
            cpu_seconds, peak = subject.cpu_seconds, subject.peak_megabytes
        return Cold(end - begin, _requests(stage, floor.USER_AGENT, start), cpu_seconds, peak)


async def measure_operator(count: int, *, profile: Path | None = None) -> tuple[Cold, Quiet, Quiet]:
    """The operator, on a control plane of its own: cold, touched without effect, started again."""
    async with Stage() as stage:
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            Subject("bench.w1.program", stage.kubeconfig, profile=profile) as subject,
        ):
            begin = subject.go()
            end = await subject.until(readiness.all_ready(count))
            await subject.quiet()
            cold = Cold(
                end - begin,
                _requests(stage, program.USER_AGENT, start),
                subject.cpu_seconds,
                subject.peak_megabytes,
            )
            before, start, begin = subject.cpu_seconds, stage.position, time.monotonic()
            await stage.touch(count, _NAMESPACE)
            end = await subject.quiet()
            touched = Quiet(
                end - begin,
                _requests(stage, program.USER_AGENT, start),
                subject.cpu_seconds - before,
                subject.peak_megabytes,
            )
        start = stage.position
        async with Subject("bench.w1.program", stage.kubeconfig) as subject:
            before = subject.cpu_seconds
            begin = subject.go()
            end = await subject.quiet()
            restarted = Quiet(
                end - begin,
                _requests(stage, program.USER_AGENT, start),
                subject.cpu_seconds - before,
                subject.peak_megabytes,
            )
        return cold, touched, restarted


async def measure_with_events(count: int) -> Cold:
    """The operator that records events besides, on a control plane of its own: cold."""
    async with Stage() as stage:
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            Subject("bench.w1.program", stage.kubeconfig, "--events") as subject,
        ):
            begin = subject.go()
            end = await subject.until(readiness.all_ready(count))
            await subject.quiet()
            cpu_seconds, peak = subject.cpu_seconds, subject.peak_megabytes
        return Cold(end - begin, _requests(stage, program.USER_AGENT, start), cpu_seconds, peak)


async def measure_flood(flood: int) -> Fresh:
    """A start over so many parents that all want their children, and one that is created once the first is served."""
    async with Stage() as stage:
        await stage.load(flood, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            Subject("bench.w1.program", stage.kubeconfig) as subject,
        ):
            subject.go()
            await subject.until(readiness.first_status())
            waiting = flood - len(readiness.ready_at)
            begin = time.monotonic()
            created = await stage.client.create(new_parent("fresh", _NAMESPACE))
            ready_seconds = await subject.until(readiness.one_ready("fresh")) - begin
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
        return Fresh(flood, (min(writes) - created_at).total_seconds(), ready_seconds, waiting)


def _requests(stage: Stage, user_agent: str, start: int) -> Counter[str]:
    return by_verb(
        [
            found
            for found in stage.requests(user_agent, start)
            if "/namespaces/" in found.path or found.verb in ("list", "watch")
        ]
    )
