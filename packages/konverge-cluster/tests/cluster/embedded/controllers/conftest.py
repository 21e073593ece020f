from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.cluster.embedded.controllers.controller_harness import ControllerHarness


@pytest.fixture
async def stage() -> AsyncIterator[ControllerHarness]:
    """A stage whose players play."""
    stage = ControllerHarness()
    playing = asyncio.create_task(stage.players.run())
    await stage.advance()
    yield stage
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
