"""Signals that stop a process, and its forced end if it does not stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from konverge._internal.runtime.shutdown_watchdog import ShutdownWatchdog

__all__ = ["call_on_signal"]

# Seconds for cancelled reconciles to end before the process is ended without them.
_CANCELLED_SECONDS = 5.0


@contextmanager
def call_on_signal(stop: Callable[[], None], grace_seconds: float) -> Iterator[None]:
    """Call a function on SIGTERM and SIGINT within the block; end the process if that does not end the block.

    Use it only in a program's main thread.

    Args:
        stop: Called in the event loop, at each signal.
        grace_seconds: Time for the block to end after the first signal.
    """
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)
    watchdog = ShutdownWatchdog()
    is_first = True

    def handle_signal(number: int, frame: FrameType | None) -> None:
        nonlocal is_first
        watchdog.arm(grace_seconds + _CANCELLED_SECONDS if is_first else _CANCELLED_SECONDS, loop)
        is_first = False
        loop.call_soon_threadsafe(stop)

    # The loop's own handlers are not an alternative: a blocked loop would not call them. Existing ones are removed, or
    # they would be called too.
    for number in numbers:
        loop.remove_signal_handler(number)
    before = {number: signal.signal(number, handle_signal) for number in numbers}
    try:
        yield
    finally:
        watchdog.disarm()
        for number in numbers:
            signal.signal(number, before[number])
