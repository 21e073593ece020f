"""The end of an operator run."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from konverge.component import ReconcileContext
from konverge.errors import StartError
from konverge.operator import Operator, RunOptions
from tests.operator.sample_operator import AGENT, OperatorHarness, Shop, Unknown

pytestmark = pytest.mark.anyio


class SlowOperator(Operator):
    """Takes its time over each owner, and notes how far it came."""

    def __init__(self, clock_seconds: float) -> None:
        super().__init__("slow")
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.let_go: list[str] = []

        @self.reconciles(Shop, workers=1)
        async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
            self.begun.append(shop.metadata.name)
            try:
                await ctx.clock.sleep(clock_seconds)
                self.ended.append(shop.metadata.name)
            finally:
                self.let_go.append(shop.metadata.name)


@asynccontextmanager
async def running(town: OperatorHarness, operator: SlowOperator, grace: timedelta) -> AsyncIterator[asyncio.Task[None]]:
    client = town.cluster.new_client(AGENT)
    options = RunOptions(namespaces=(town.namespace,), grace=grace)
    run = operator.run(client, options, clock=town.clock, stops_on_signals=True)
    task = asyncio.create_task(run)
    await town.cluster.eventually(lambda: operator.begun, describe="a pass is under way")
    try:
        yield task
    finally:
        task.cancel()


async def test_the_first_signal_lets_passes_under_way_end_and_starts_no_other(town: OperatorHarness) -> None:
    operator = SlowOperator(1.0)
    await town.create_shop("one")
    await town.create_shop("two")

    async with running(town, operator, grace=timedelta(seconds=20)) as task:
        os.kill(os.getpid(), signal.SIGTERM)
        await task

    assert len(operator.ended) == 1
    assert operator.begun == operator.ended


async def test_after_the_grace_period_passes_are_cancelled(town: OperatorHarness) -> None:
    operator = SlowOperator(1000.0)
    await town.create_shop("one")

    async with running(town, operator, grace=timedelta(seconds=1)) as task:
        before = town.clock.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
        await task

    assert operator.ended == []
    assert operator.let_go == ["one"]
    assert 1.0 <= town.clock.monotonic() - before < 60.0


async def test_a_second_signal_ends_it_at_once(town: OperatorHarness) -> None:
    operator = SlowOperator(1000.0)
    await town.create_shop("one")

    async with running(town, operator, grace=timedelta(seconds=900)) as task:
        before = town.clock.monotonic()
        os.kill(os.getpid(), signal.SIGTERM)
        await town.clock.sleep(0.5)
        assert not task.done()
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)  # nothing is left to hurry
        await task

    assert operator.let_go == ["one"]
    assert town.clock.monotonic() - before < 60.0


async def test_signals_are_handled_as_before_when_it_has_ended(town: OperatorHarness) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    operator = SlowOperator(0.0)
    await town.create_shop("one")

    async with running(town, operator, grace=timedelta(seconds=1)) as task:
        os.kill(os.getpid(), signal.SIGTERM)
        await task

    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


async def test_cancelling_the_run_cancels_its_passes(town: OperatorHarness) -> None:
    operator = SlowOperator(1000.0)
    await town.create_shop("one")

    async with running(town, operator, grace=timedelta(seconds=900)) as task:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert operator.let_go == ["one"]


async def test_a_kind_that_the_cluster_does_not_know_ends_the_run_with_its_name(town: OperatorHarness) -> None:
    operator = Operator("unknown")

    @operator.reconciles(Unknown)
    async def reconcile(owner: Unknown, ctx: ReconcileContext) -> None:
        pass

    with pytest.raises(StartError, match="Unknown"):
        await operator.run(town.client, RunOptions(start_timeout=timedelta()), clock=town.clock)
