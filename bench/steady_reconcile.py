"""The cost of a reconcile of 1,000 owners with five children each and no changes, for a whole operator.

The operator of W1 runs on the embedded cluster. Once it is steady, one change of one object enqueues every owner
(through a watch of the operator); the result is the processor time until the last reconcile ends: queue, decoded
owners, components, comparison, status. The only request meanwhile is the bench's own. The floor is the unavoidable
work: rendering the 5,000 desired objects and decoding the 6,000 live ones from a cache's bytes.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec

from bench.w1 import parents, program
from bench.w1.parents import PARENT, Parent
from konverge.client import Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.component import Component
from konverge.crd import crd_manifest, decode
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.operator import Change, Operator, RunOptions
from konverge.primitives import ConfigMap, Deployment, Secret, Service, ServiceAccount
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster.embedded import LocalCluster

_OWNERS = 1_000
_ROUNDS = 5
_GOAL_SECONDS = 1.0
_NAMESPACE = "default"
_CHILDREN = (ConfigMap.gvk, Secret.gvk, ServiceAccount.gvk, Service.gvk, Deployment.gvk)
_BELL = ObjectKey("", _NAMESPACE)
_NAMESPACES = GroupVersionKind("", "v1", "Namespace")
_AGENT = "settled"


@dataclass(frozen=True)
class _Measurement:
    seconds: float
    floor_seconds: float
    requests: int


class _CountingOperator:
    """The operator of W1 with a count of its reconciles and a trigger object that enqueues all owners."""

    def __init__(self) -> None:
        self.passes = 0
        self.operator = Operator(_AGENT)
        self.operator.manages(Parent, program.settings, self._application)
        self.operator.watches("v1/Namespace", requeues=Parent)(self._everybody)

    def _application(self, parent: Parent) -> Component:
        self.passes += 1
        return program.application(parent)

    def _everybody(self, change: Change) -> Iterable[ObjectKey]:
        return [ObjectKey(_NAMESPACE, _name(number)) for number in range(_OWNERS)]


def _name(number: int) -> str:
    return f"parent-{number:04}"


async def _wait_until_steady(counted: _CountingOperator, requests: Callable[[], int]) -> None:
    """Wait until there have been no reconciles and no requests for a second."""
    before = (-1, -1)
    while before != (now := (counted.passes, requests())):
        before = now
        await asyncio.sleep(1.0)


async def _is_served(client: Client) -> bool:
    await client.list(PARENT)
    return True


@asynccontextmanager
async def _running(counted: _CountingOperator, client: Client, clock: SystemClock) -> AsyncIterator[None]:
    running = asyncio.create_task(counted.operator.run(client, RunOptions(records_events=False), clock=clock))
    try:
        yield
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def _round(counted: _CountingOperator, client: Client, number: int, clock: SystemClock) -> float:
    """Change the trigger object; return the processor time until every owner is reconciled."""
    await client.patch(_NAMESPACES, _BELL, {"metadata": {"labels": {"rung": str(number)}}}, patch_type="merge")
    # The change is waiting in the event loop: from here on the operator works.
    wanted = counted.passes + _OWNERS
    begin = time.process_time()
    await eventually(lambda: counted.passes >= wanted, clock=clock, timeout_seconds=60)
    return time.process_time() - begin


def _floor(live: list[bytes], owners: list[Parent]) -> float:
    begin = time.process_time()
    for owner in owners:
        program.settings(owner).preview()
        program.application(owner).preview()
    for text in live:
        msgspec.json.decode(text)
    return time.process_time() - begin


async def _run() -> _Measurement:
    clock, counted = SystemClock(), _CountingOperator()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster, Client(cluster.transport()) as admin:
        client = Client(cluster.transport(), user_agent=_AGENT, clock=clock)

        def requests() -> int:
            return sum(entry.user_agent == _AGENT and entry.verb != "watch" for entry in cluster.requests)

        await admin.create(crd_manifest(Parent))
        await eventually(lambda: _is_served(admin), clock=clock)
        for number in range(_OWNERS):
            await admin.create(parents.new_parent(_name(number), _NAMESPACE))
        async with client, _running(counted, client, clock):
            await _wait_until_steady(counted, requests)
            before = requests()
            seconds = [await _round(counted, admin, number, clock) for number in range(_ROUNDS)]
            await _wait_until_steady(counted, requests)
            requests_sent = requests() - before
        found = [obj for gvk in (PARENT, *_CHILDREN) for obj in (await admin.list(gvk)).items]
    live = [msgspec.json.encode(obj) for obj in found]
    owners = [decode(Parent, obj) for obj in found if obj["kind"] == PARENT.kind]
    floor = statistics.median(_floor(live, owners) for _ in range(_ROUNDS))
    return _Measurement(statistics.median(seconds), floor, requests_sent)


def measure() -> Iterator[str]:
    """Run the measurement; yield a line for the table."""
    figures = asyncio.run(_run())
    yield (
        f"settled pass over {_OWNERS:,} owners x {len(_CHILDREN)} children, whole operator: {figures.seconds:.2f} s of "
        f"CPU (goal: <= {_GOAL_SECONDS:g}), {figures.requests} requests (goal: 0); floor (render and decode): "
        f"{figures.floor_seconds:.2f} s, ratio {figures.seconds / figures.floor_seconds:.2f}"
    )
