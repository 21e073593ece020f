from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from tests.cluster.embedded.controllers.controller_harness import ControllerHarness


@pytest.fixture
async def harness() -> AsyncIterator[ControllerHarness]:
    """Run the controllers of a harness."""
    harness = ControllerHarness()
    playing = asyncio.create_task(harness.players.run())
    await harness.advance()
    yield harness
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
