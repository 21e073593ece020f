"""Shielded waits: work that must finish although its task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["await_shielded"]

T = TypeVar("T")


async def await_shielded(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Wait for the work to finish even if cancelled; then raise `asyncio.CancelledError`.

    Args:
        work: The work; it must finish soon by itself, since it is not cancelled.

    Returns:
        The result of the work.

    Raises:
        asyncio.CancelledError: The task was cancelled during the wait, regardless of the result of the work.
        Exception: The exception of the work.
    """
    future = asyncio.ensure_future(work)
    is_cancelled = False
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        if not future.cancelled():
            future.exception()  # retrieve the exception so that asyncio does not log it
        raise asyncio.CancelledError
    return future.result()
