"""Work that runs beside a block and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from konverge.cancellation import await_shielded

__all__ = ["background_task"]


@asynccontextmanager
async def background_task(
    work: Coroutine[Any, Any, None], *, name: str | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """Let it run beside the block; cancelled at the block's end, it has ended when this is left.

    Also when that is cancelled again meanwhile: else it would go on for a while, with what the block has taken back. A
    failure of it is raised at the end of a block that has none; a task group would wrap what the block raises.

    Args:
        work: What is soon at its end when it is cancelled.
        name: What its task is called.
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await await_shielded(asyncio.wait([task]))
    if not task.cancelled():
        task.result()
