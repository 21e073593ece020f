"""Being cancelled where something must come to its end first."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["await_shielded"]

T = TypeVar("T")


async def await_shielded(work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """Wait until it has ended, also while being cancelled; that is raised afterwards.

    Args:
        work: What ends by itself, soon. It is not cancelled.

    Returns:
        What it returns.

    Raises:
        asyncio.CancelledError: This was cancelled meanwhile, however the work has ended.
        Exception: What it raises.
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
            future.exception()  # nobody else hears of it
        raise asyncio.CancelledError
    return future.result()
