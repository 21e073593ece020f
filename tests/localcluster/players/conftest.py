from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.localcluster.players.stage import Stage


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """A stage whose players play."""
    stage = Stage()
    playing = asyncio.create_task(stage.players.run())
    await stage.settle()
    yield stage
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
