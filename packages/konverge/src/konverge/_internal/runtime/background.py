"""Background tasks that end with the block that they accompany."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from konverge._internal.cancellation import await_shielded

__all__ = ["background_task"]


@asynccontextmanager
async def background_task(
    work: Coroutine[Any, Any, None], *, name: str | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Run the coroutine in the background; cancel it and wait for its end when the block exits.

    It waits even if the wait is cancelled: otherwise the coroutine would continue for a while with resources that the
    block has released. A failure of the coroutine is raised at the exit of a block without an exception; a task group
    would wrap the exception of the block.

    Args:
        work: A coroutine that ends soon after its cancellation.
        name: The name of its task.
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await await_shielded(asyncio.wait([task]))
    if not task.cancelled():
        task.result()
