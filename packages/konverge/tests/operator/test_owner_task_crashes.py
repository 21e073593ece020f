"""Timers and long-running tasks after a crash at every request: the next process reaches the same state.

A shop has a timer that writes a report and a condition, and a task that writes a log book. Both run once to count their
requests. Then they run again for each request: the process dies before it, or after the server acted, and the next one
starts.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy
from konverge.kube import Condition, Object, build_owner_reference
from konverge.operator import Operator, OwnerContext, RunOptions
from tests.operator.sample_operator import AGENT, CONFIG_MAP, SHOP, OperatorHarness, Shop, settings
from tests.simulation.crashing_transport import CrashingTransport

pytestmark = pytest.mark.anyio


class Writers:
    """An operator with a timer and a task, and which tasks run."""

    def __init__(self) -> None:
        self.running: list[str] = []
        self.operator = Operator("shops")
        self.operator.manages(Shop, settings)
        self.operator.runs_timer(Shop, interval=timedelta(hours=1), initial_delay=timedelta(0))(self.report)
        self.operator.runs_task(Shop)(self.keep_book)

    async def report(self, shop: Shop, ctx: OwnerContext) -> None:
        await ctx.cluster.apply(build_object(ctx, "report", {"greeting": shop.spec.greeting}), field_manager="report")
        ctx.stage(Condition("Reported", "True", "Written", shop.spec.greeting))

    async def keep_book(self, shop: Shop, ctx: OwnerContext) -> None:
        name = shop.metadata.name
        self.running.append(name)
        try:
            for page in ("first", "second"):
                await ctx.cluster.apply(build_object(ctx, "book", {"page": page}), field_manager="book")
            await asyncio.Event().wait()
        finally:
            self.running.remove(name)


def build_object(ctx: OwnerContext, part: str, data: dict[str, str]) -> Object:
    metadata = {
        "name": f"{ctx.owner_key.name}-{part}",
        "namespace": ctx.owner_key.namespace,
        "ownerReferences": [build_owner_reference(ctx.owner)],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def run_shop(town: OperatorHarness, name: str, fatal: int, *, answered: bool) -> int:
    """Create a shop under an operator that dies at a request, and check the state that the next one reaches."""
    await town.create_shop(name)
    writers = Writers()
    first = CrashingTransport(town.cluster.new_transport(), fatal=fatal, answered=answered)
    await run_until_written(town, writers, first, name)
    assert writers.running == [], "the tasks have ended with their process"
    if fatal:
        await run_until_written(town, writers, CrashingTransport(town.cluster.new_transport()), name)
    uids = {(await town.client.get(CONFIG_MAP, town.key(f"{name}-{part}")))["metadata"]["uid"] for part in PARTS}
    assert len(uids) == len(PARTS)
    await town.client.delete(SHOP, town.key(name))
    await town.cluster.eventually(lambda: are_gone(town, name), describe=f"{name} and its objects are gone")
    return first.sent


PARTS = ("report", "book", "settings")


async def run_until_written(town: OperatorHarness, writers: Writers, transport: CrashingTransport, name: str) -> None:
    """Run the operator until everything is written or the process dies."""
    client = Client(transport, user_agent=AGENT, clock=town.clock)
    options = RunOptions(namespaces=(town.namespace,), records_events=False)
    running = asyncio.ensure_future(writers.operator.run(client, options, clock=town.clock, entropy=SeededEntropy(3)))

    async def is_over() -> bool:
        if transport.died.is_set():
            return True
        reported = await town.condition(name, "Reported")
        ready = await town.condition(name)
        return (
            reported is not None
            and ready is not None
            and ready.status == "True"
            and await town.exists(CONFIG_MAP, f"{name}-book")
            and await town.data(f"{name}-book") == {"page": "second"}
            and await town.data(f"{name}-report") == {"greeting": "Hello"}
        )

    try:
        await town.cluster.eventually(is_over, describe="everything is written, or the operator is dead")
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def are_gone(town: OperatorHarness, name: str) -> bool:
    return not [part for part in PARTS if await town.exists(CONFIG_MAP, f"{name}-{part}")]


async def test_the_timer_and_the_task_write_everything_without_a_crash(town: OperatorHarness) -> None:
    assert await run_shop(town, "corner", 0, answered=False) > 8


@pytest.mark.slow
@pytest.mark.parametrize("answered", [False, True], ids=["before the request", "after the server acted"])
async def test_a_crash_at_any_request_ends_in_the_same_state(town: OperatorHarness, answered: bool) -> None:
    requests = await run_shop(town, "shop-0", 0, answered=answered)
    for fatal in range(1, requests + 1):
        await run_shop(town, f"shop-{fatal}", fatal, answered=answered)
