"""Simulated time: waits take no real time, and the order of events is kept."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest

from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop, SystemClock, SystemEntropy

pytestmark = pytest.mark.anyio


async def test_an_hour_passes_at_once() -> None:
    clock, machine = SimulatedClock(), SystemClock()
    begin = machine.monotonic()

    await clock.sleep(3600)

    assert clock.monotonic() == pytest.approx(3600)
    assert machine.monotonic() - begin < 10


async def test_the_calendar_moves_with_the_loop() -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    clock = SimulatedClock(start)

    await clock.sleep(90)

    assert clock.now() == start + timedelta(seconds=90)


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock, woken = SimulatedClock(), []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (30.0, 10.0, 20.0):
            group.create_task(sleep(seconds))

    assert woken == [10.0, 20.0, 30.0]


async def test_deadlines_are_in_simulated_time_too() -> None:
    clock = SimulatedClock()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(60):
            await asyncio.Event().wait()

    assert clock.monotonic() == pytest.approx(60)


def test_a_thread_that_still_runs_at_the_end_is_waited_for() -> None:
    go_on, ended = threading.Event(), []

    def work() -> None:
        go_on.wait(10)
        ended.append(True)

    async def leave_it_running() -> None:
        asyncio.get_running_loop().run_in_executor(None, work)
        threading.Timer(0.05, go_on.set).start()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(leave_it_running())

    assert ended == [True]


def test_seeded_draws_are_the_same_each_time() -> None:
    first, second = SeededEntropy(7), SeededEntropy(7)

    draws = [(source.uid(), source.name_suffix(), source.uniform(0, 1)) for source in (first, second)]

    assert draws[0] == draws[1]
    assert SeededEntropy(8).uid() != draws[0][0]


def test_drawn_identifiers_look_as_kubernetes_has_them() -> None:
    uid, suffix = SystemEntropy().uid(), SystemEntropy().name_suffix(5)

    assert [len(part) for part in uid.split("-")] == [8, 4, 4, 4, 12]
    assert uid[14] == "4"
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_the_simulated_clock_waits_for_a_thread() -> None:
    async def read() -> tuple[bool, float]:
        async with asyncio.timeout(3600):
            has_ended = await asyncio.to_thread(threading.Event().wait, 0.05)
        return has_ended, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        assert runner.run(read()) == (False, 0.0)


def test_a_thread_that_never_ends_does_not_stop_the_simulated_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge.clock._JumpingSelector._STUCK_AFTER_SECONDS", 0.01)
    end = threading.Event()

    async def wait() -> None:
        try:
            async with asyncio.timeout(60):
                await asyncio.to_thread(end.wait)
        finally:
            monkeypatch.undo()  # the end of the thread takes real time
            end.set()

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner, pytest.raises(TimeoutError):
        runner.run(wait())
