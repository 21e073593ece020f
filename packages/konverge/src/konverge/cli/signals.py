"""Ctrl-C, or a polite request to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import click

__all__ = ["abort_on_event", "cancel_on_signal", "handle_sigterm_as_sigint", "stop_event_on_signal"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def handle_sigterm_as_sigint() -> None:
    """Have SIGTERM do what SIGINT does at that moment: by itself it would end the process, and nothing is cleaned up.

    Only in a program's main thread.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)  # asyncio's own, while it runs something
        (handler if callable(handler) else signal.default_int_handler)(number, frame)

    signal.signal(signal.SIGTERM, interrupt)


@contextmanager
def stop_event_on_signal() -> Iterator[asyncio.Event]:
    """An event that is set by SIGINT or SIGTERM, for as long as the block runs.

    The second signal cancels the block, which cleans up all the same. The third interrupts that, and a blocked loop.

    Raises:
        click.Abort: A second signal came.
    """
    told = asyncio.Event()
    with _call_on_signal(told.set):
        yield told


@contextmanager
def cancel_on_signal() -> Iterator[None]:
    """Cancel the block when SIGINT or SIGTERM comes.

    Unlike that of asyncio's own handler, the block's cleaning up is only interrupted by a third.

    Raises:
        click.Abort: A signal came.
    """
    task = asyncio.current_task()
    assert task is not None
    with _call_on_signal(task.cancel):
        yield


@contextmanager
def _call_on_signal(first: Callable[[], object]) -> Iterator[None]:
    """Have the first signal call that in the loop, the second cancel the block, the third raise `KeyboardInterrupt`."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    heard = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if heard > len(calls):
            signal.default_int_handler(number, frame)
        loop.call_soon_threadsafe(calls[heard - 1])

    calls = (first, task.cancel)

    # Not the loop's own handlers: what has handlers for a while, as an operator that runs, puts back only these.
    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    except (Exception, asyncio.CancelledError) as ending:
        if heard > len(calls):
            raise asyncio.CancelledError from None  # `KeyboardInterrupt` says it already, to whoever runs the loop
        if heard and isinstance(ending, asyncio.CancelledError):
            raise click.Abort from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def abort_on_event(event: asyncio.Event) -> None:
    """End the group of tasks that this runs in as soon as the event is set.

    Raises:
        click.Abort: It was set.
    """
    await event.wait()
    raise click.Abort
