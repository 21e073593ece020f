"""Signals that stop a process, and its end where stopping does not end it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from konverge.runtime.shutdown_watchdog import ShutdownWatchdog

__all__ = ["call_on_signal"]

# How long passes that were cancelled may take to let go before the process is ended without them.
_CANCELLED_SECONDS = 5.0


@contextmanager
def call_on_signal(stop: Callable[[], None], grace_seconds: float) -> Iterator[None]:
    """Let SIGTERM and SIGINT call a function within the block, and end the process if that does not end the block.

    Only in a program's main thread.

    Args:
        stop: Is called in the event loop, at each signal.
        grace_seconds: How long the block may take to end after the first.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    last_resort = ShutdownWatchdog()
    is_first = True

    def handle_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_first
        last_resort.arm(grace_seconds + _CANCELLED_SECONDS if is_first else _CANCELLED_SECONDS, loop)
        is_first = False
        loop.call_soon_threadsafe(stop)

    # Not the loop's own handlers: a loop that is blocked would not call them. Those that it has would be called too.
    for number in numbers:
        loop.remove_signal_handler(number)
    before = {number: signal.signal(number, handle_signal) for number in numbers}
    try:
        yield
    finally:
        last_resort.disarm()
        for number in numbers:
            signal.signal(number, before[number])
