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


class BlockingClock(SystemClock):
    """A clock whose time passes only while `block_until` blocks: 10 ms between two reads.

    On a busy machine, the system can suspend the test for longer than the limit before or after it blocks.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self.is_blocking = threading.Event()

    def monotonic(self) -> float:
        """Return the seconds at this read."""
        if self.is_blocking.is_set():
            self._seconds += 0.01
        return self._seconds


def block_until(caplog: pytest.LogCaptureFixture, lines: int, clock: BlockingClock) -> None:
    deadline = CLOCK.monotonic() + 20.0

    def end_at_last_line(record: logging.LogRecord) -> bool:
        # The watchdog's thread calls this before its next read of the clock.
        if len(caplog.records) + 1 == lines:
            clock.is_blocking.clear()
        return True

    caplog.handler.addFilter(end_at_last_line)
    clock.is_blocking.set()
    while len(caplog.records) < lines and CLOCK.monotonic() < deadline:
        pass
    caplog.handler.removeFilter(end_at_last_line)


async def test_the_line_that_blocks_is_named_while_it_does_and_less_and_less_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = BlockingClock()
    async with BlockedLoopWatchdog(LIMIT, clock=clock):
        block_until(caplog, 2, clock)
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
