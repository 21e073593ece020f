"""An operator that dies at one request, and its successor, on an embedded cluster in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from konverge.client import Client, Transport
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import KindNotServedError
from konverge.kube import GroupVersionKind
from konverge.operator import Operator
from konverge_cluster.embedded import LocalCluster
from tests.simulation.crashing_transport import CrashingTransport

__all__ = ["run_with_successor", "wait_until_served"]

_RESTART_SECONDS = 2.0
_MAX_SECONDS = 3600


async def wait_until_served(client: Client, gvk: GroupVersionKind, clock: SimulatedClock) -> None:
    """Wait until the API server serves a kind.

    Raises:
        TimeoutError: It does not serve the kind within a minute.
    """
    async with asyncio.timeout(60):
        while True:
            try:
                await client.mapping(gvk)
            except KindNotServedError:
                await clock.sleep(1)
            else:
                return


@asynccontextmanager
async def run_with_successor(
    operator: Operator, cluster: LocalCluster, first: CrashingTransport, clock: SimulatedClock
) -> AsyncIterator[None]:
    """Run the operator within the block, and another one shortly after its death, as a Deployment does with a pod.

    Args:
        operator: The operator.
        cluster: The cluster.
        first: The transport of the first operator.
        clock: The clock.

    Raises:
        ExceptionGroup: An operator failed, which no crash of another process may cause.
        TimeoutError: The block takes more than an hour of simulated time.
    """

    async def operate(transport: Transport) -> None:
        async with Client(transport, user_agent=operator.name, clock=clock) as client:
            await operator.run(client, clock=clock, entropy=SeededEntropy())

    async def succeed() -> None:
        await first.died.wait()
        running.cancel()
        await clock.sleep(_RESTART_SECONDS)
        await operate(CrashingTransport(cluster.transport()))

    async with asyncio.timeout(_MAX_SECONDS), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(operate(first))
        successor = tasks.create_task(succeed())
        yield
        running.cancel()
        successor.cancel()
