"""The cost of a reconcile of an owner of a box with ten resources and no changes.

The box runs on the embedded cluster with an operator's caches. Once it is steady, every owner is enqueued again; the
result is the processor time until the last reconcile ends: queue, steps, expressions, comparison, status. In turn with
it, the same is measured for an operator in Python with the same objects.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from bench.shop_operator import BOX, SHOP, new_shop, python_operator
from konverge._internal.operator.owner_context import OperatorRun
from konverge._internal.runtime import Process
from konverge.client import Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.crd import crd_manifest
from konverge.operator import Operator, RunOptions
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import BoxController
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster.embedded import LocalCluster

_OWNERS = 100
_ROUNDS = 7
_GOAL_MILLISECONDS = 3.0


@dataclass(frozen=True)
class _Measurement:
    milliseconds: float
    python_milliseconds: float
    ratio: float
    requests: int


class _Subject:
    """One of the two operators, with owners in its own namespace.

    Args:
        operator: The operator.
        passes: Returns the number of reconciles so far.
    """

    def __init__(self, operator: Operator, passes: Callable[[], int]) -> None:
        self.agent = self.namespace = operator.name
        self.operator = operator
        self._passes = passes
        self._process: Process | None = None
        operator.runs_in_background(self._watch_process)

    @asynccontextmanager
    async def _watch_process(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        self._process = process
        yield

    @asynccontextmanager
    async def running(self, client: Client, clock: SystemClock) -> AsyncIterator[None]:
        """Run the operator; the block begins once it is steady."""
        options = RunOptions(records_events=False, namespaces=(self.namespace,))
        running = asyncio.create_task(self.operator.run(client, options, clock=clock))
        try:
            await eventually(lambda: self._passes() >= _OWNERS, clock=clock, timeout_seconds=120)
            await self._wait_until_steady()
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    async def _wait_until_steady(self) -> None:
        """Wait until there has been no reconcile for a second."""
        before = -1
        while before != (now := self._passes()):
            before = now
            await asyncio.sleep(1.0)

    async def round(self, clock: SystemClock) -> float:
        """Enqueue every owner; return the milliseconds of processor time per reconcile."""
        assert self._process is not None
        owners = self._process.list_owners(SHOP)
        assert len(owners) == _OWNERS
        wanted = self._passes() + _OWNERS
        begin = time.process_time()
        self._process.enqueue(SHOP, owners, reason="the bench")
        await eventually(lambda: self._passes() >= wanted, clock=clock, timeout_seconds=120)
        return (time.process_time() - begin) / _OWNERS * 1_000


def _box() -> _Subject:
    running = BoxController(load_box(BOX))
    return _Subject(
        running.operator, lambda: sum(run.health.resources["shop"].results.total() for run in running.active.runs)
    )


def _python() -> _Subject:
    begun = 0

    def count() -> None:
        nonlocal begun
        begun += 1

    return _Subject(python_operator(count), lambda: begun)


async def _run() -> _Measurement:
    clock, subjects = SystemClock(), (_box(), _python())
    agents = {subject.agent for subject in subjects}
    box, python = subjects
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster, Client(cluster.transport()) as admin:

        async def is_served() -> bool:
            await admin.list(SHOP)
            return True

        def requests() -> int:
            return sum(entry.user_agent in agents and entry.verb != "watch" for entry in cluster.requests)

        await admin.create(crd_manifest(box.operator.defined_resources[0]))  # its status has fields of the file's own
        await eventually(is_served, clock=clock)
        for subject in subjects:
            metadata = {"name": subject.namespace}
            await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            for number in range(_OWNERS):
                await admin.create(new_shop(f"shop-{number:03}", subject.namespace))
        async with (
            Client(cluster.transport(), user_agent=box.agent, clock=clock) as box_client,
            Client(cluster.transport(), user_agent=python.agent, clock=clock) as python_client,
            box.running(box_client, clock),
            python.running(python_client, clock),
        ):
            before = requests()
            rounds = [(await box.round(clock), await python.round(clock)) for _ in range(_ROUNDS)]
            await asyncio.sleep(1.0)
            requests_sent = requests() - before
    ours, theirs = zip(*rounds, strict=True)
    ratios = [one / other for one, other in rounds]
    return _Measurement(statistics.median(ours), statistics.median(theirs), statistics.median(ratios), requests_sent)


def measure() -> Iterator[str]:
    """Run the measurement; yield a line for the table."""
    figures = asyncio.run(_run())
    yield (
        f"a box's pass over 10 resources with nothing to do, whole operator: {figures.milliseconds:.2f} ms of CPU "
        f"(goal: <= {_GOAL_MILLISECONDS:g}), {figures.requests} requests (goal: 0); the same in Python: "
        f"{figures.python_milliseconds:.2f} ms, ratio {figures.ratio:.2f}"
    )
