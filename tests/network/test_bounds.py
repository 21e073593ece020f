"""How much is asked at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.clock import SimulatedClock, SimulatedLoop
from konverge.network import Bounds

pytestmark = pytest.mark.anyio
CLOCK = SimulatedClock()


@pytest.fixture
def anyio_backend() -> Any:
    return "asyncio", {"loop_factory": SimulatedLoop}


async def test_a_server_that_hangs_has_its_own_places_and_no_others() -> None:
    bounds = Bounds[str](per_server=2, in_all=3)
    inside: list[str] = []

    async def hold(server: str, seconds: float) -> None:
        async with bounds.place(server):
            inside.append(server)
            await CLOCK.sleep(seconds)
            inside.remove(server)

    hung = [asyncio.create_task(hold("hangs", 1000)) for _ in range(5)]
    await CLOCK.sleep(1)
    quick = [asyncio.create_task(hold(f"answers-{number}", 1)) for number in range(4)]
    await CLOCK.sleep(0.5)
    assert sorted(inside) == ["answers-0", "hangs", "hangs"]
    await asyncio.wait_for(asyncio.gather(*quick), 4)
    assert inside == ["hangs", "hangs"]
    for task in hung:
        task.cancel()
    await asyncio.wait(hung)
    assert len(bounds) == 0
