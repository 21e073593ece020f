"""Handling of SIGINT (Ctrl-C) and SIGTERM by the commands."""

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
    """Make SIGTERM act like SIGINT: its default ends the process without any cleanup.

    Call it only in the main thread of a program.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)  # the handler of asyncio while a loop runs
        (handler if callable(handler) else signal.default_int_handler)(number, frame)

    signal.signal(signal.SIGTERM, interrupt)


@contextmanager
def stop_event_on_signal() -> Iterator[asyncio.Event]:
    """Provide an event that SIGINT or SIGTERM sets while the block runs.

    A second signal cancels the block, which still cleans up. A third one interrupts the cleanup and a blocked loop.

    Raises:
        click.Abort: A second signal arrived.
    """
    event = asyncio.Event()
    with _call_on_signal(event.set):
        yield event


@contextmanager
def cancel_on_signal() -> Iterator[None]:
    """Cancel the block when SIGINT or SIGTERM arrives.

    Unlike with asyncio's own handler, only a third signal interrupts the cleanup of the block.

    Raises:
        click.Abort: A signal arrived.
    """
    task = asyncio.current_task()
    assert task is not None
    with _call_on_signal(task.cancel):
        yield


@contextmanager
def _call_on_signal(first: Callable[[], object]) -> Iterator[None]:
    """Call `first` in the loop on the first signal, cancel the block on the second, interrupt it on the third."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > len(calls):
            signal.default_int_handler(number, frame)
        loop.call_soon_threadsafe(calls[received - 1])

    calls = (first, task.cancel)

    # Not the handlers of the loop: a running operator replaces handlers for a while and restores only these.
    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    except (Exception, asyncio.CancelledError) as ending:
        if received > len(calls):
            raise asyncio.CancelledError from None  # the caller of the loop already gets `KeyboardInterrupt`
        if received and isinstance(ending, asyncio.CancelledError):
            raise click.Abort from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


async def abort_on_event(event: asyncio.Event) -> None:
    """Abort the surrounding task group as soon as the event is set.

    Raises:
        click.Abort: The event was set.
    """
    await event.wait()
    raise click.Abort
