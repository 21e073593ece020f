"""The thread that reports the line that blocks the event loop."""

from __future__ import annotations

import asyncio
import logging
import threading
from datetime import timedelta

import pytest

from konverge._internal.runtime.blocked_loop import BlockedLoopWatchdog
from konverge.clock import SystemClock

pytestmark = pytest.mark.anyio

LIMIT = timedelta(milliseconds=50)
CLOCK = SystemClock()


def block_until(caplog: pytest.LogCaptureFixture, lines: int) -> None:
    deadline = CLOCK.monotonic() + 20.0
    while len(caplog.records) < lines and CLOCK.monotonic() < deadline:
        pass


async def test_the_line_that_blocks_is_named_while_it_does_and_less_and_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with BlockedLoopWatchdog(LIMIT, clock=CLOCK):
        block_until(caplog, 2)
        assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
        while len(caplog.records) < 3:
            await CLOCK.sleep(0.01)

    first, second, last = caplog.messages
    assert "test_blocked_loop.py:" in first
    assert "block_until" in first
    seconds = [
        float(line.removeprefix("the event loop has been blocked for ").split(" ")[0]) for line in (first, second)
    ]
    assert seconds[1] >= 2 * LIMIT.total_seconds()
    assert last.startswith("the event loop runs again after ")


async def test_a_loop_that_runs_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async with BlockedLoopWatchdog(timedelta(seconds=5), clock=CLOCK):
        await CLOCK.sleep(0.01)

    assert caplog.messages == []
    assert [thread.name for thread in threading.enumerate() if "blocked loop" in thread.name] == []


def test_a_loop_that_was_closed_ends_the_thread() -> None:
    watchdog = BlockedLoopWatchdog(LIMIT, clock=CLOCK)

    async def enter() -> None:
        await watchdog.__aenter__()

    asyncio.run(enter())

    watchdog._thread.join(10.0)
    assert not watchdog._thread.is_alive()
