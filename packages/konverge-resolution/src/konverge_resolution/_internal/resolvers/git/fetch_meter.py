"""Bytes that git receives, for a user who watches: the growth of its folder."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from konverge._internal.runtime.background import background_task
from konverge.clock import SystemClock
from konverge_resolution._internal.fetch_progress import FetchProgress

__all__ = ["meter_folder"]

_INTERVAL_SECONDS = 0.2


@asynccontextmanager
async def meter_folder(folder: Path, progress: FetchProgress) -> AsyncIterator[None]:
    """Count the growth of a folder during the block as received bytes; do nothing if nobody watches.

    Args:
        folder: The folder.
        progress: Receives the bytes.
    """
    if not progress.is_observed:
        yield
        return
    size = await asyncio.to_thread(_measure_size, folder)

    def record(measured: int) -> None:
        nonlocal size
        if measured > size:
            progress.add_bytes(measured - size)
            size = measured

    async def measure_periodically() -> None:
        clock = SystemClock()  # git runs in real time, even with a simulated clock
        while True:
            await clock.sleep(_INTERVAL_SECONDS)
            record(await asyncio.to_thread(_measure_size, folder))

    async with background_task(measure_periodically(), name="bytes of git"):
        yield
    record(await asyncio.to_thread(_measure_size, folder))


def _measure_size(folder: Path) -> int:
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += (Path(path) / name).lstat().st_size
            except OSError:
                continue  # removed in the meantime
    return size
