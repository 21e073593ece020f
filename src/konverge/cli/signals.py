"""Ctrl-C, or a polite request to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click

__all__ = ["abort_when", "until_told_to_stop"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def until_told_to_stop() -> Iterator[asyncio.Event]:
    """An event that is set by SIGINT or SIGTERM, for as long as the block runs.

    The second signal acts as if nobody had asked: it ends the process at once.
    """
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def tell() -> None:
        told.set()
        for number in _SIGNALS:
            loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, tell)
    try:
        yield told
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def abort_when(told: asyncio.Event) -> None:
    """End the group of tasks that this runs in as soon as the event is set.

    Raises:
        click.Abort: It was set.
    """
    await told.wait()
    raise click.Abort
