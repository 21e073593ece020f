"""How much is asked at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.clock import SimulatedClock, SimulatedLoop
from konverge_resolution.network import ConcurrencyLimiter

pytestmark = pytest.mark.anyio
CLOCK = SimulatedClock()


@pytest.fixture
def anyio_backend() -> Any:
    return "asyncio", {"loop_factory": SimulatedLoop}


async def test_a_server_that_hangs_has_its_own_places_and_no_others() -> None:
    bounds = ConcurrencyLimiter[str](per_server=2, total=3)
    inside: list[str] = []

    async def hold(server: str, seconds: float) -> None:
        async with bounds.slot(server):
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


async def test_a_tenant_that_asks_for_everything_leaves_places_at_its_servers_and_in_all() -> None:
    bounds = ConcurrencyLimiter[str](per_server=4, total=8, per_tenant=(3, 6))
    inside: list[tuple[str, str]] = []

    async def hold(tenant: str, server: str) -> None:
        async with bounds.slot(server, tenant):
            inside.append((tenant, server))
            await CLOCK.sleep(1000)

    tasks = [asyncio.create_task(hold("greedy", f"s-{number % 20}")) for number in range(200)]
    tasks += [asyncio.create_task(hold("greedy", "shared")) for _ in range(50)]
    await CLOCK.sleep(1)
    assert [tenant for tenant, _ in inside] == ["greedy"] * 6
    tasks += [asyncio.create_task(hold("modest", server)) for server in ("shared", "s-0")]
    await CLOCK.sleep(1)
    assert inside[6:] == [("modest", "shared"), ("modest", "s-0")]
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert len(bounds) == 0


async def test_a_place_that_is_free_again_goes_to_who_has_the_fewest_however_many_the_others_wait_for() -> None:
    bounds = ConcurrencyLimiter[str](per_server=4, total=4, per_tenant=(4, 4))
    order: list[str] = []

    async def hold(tenant: str) -> None:
        async with bounds.slot("shared", tenant):
            order.append(tenant)
            await CLOCK.sleep(1)

    greedy = [asyncio.create_task(hold("greedy")) for _ in range(400)]
    await CLOCK.sleep(0.5)
    await asyncio.gather(*(hold("modest") for _ in range(4)))
    assert "modest" in order[4:6]
    for task in greedy:
        task.cancel()
    await asyncio.wait(greedy)


async def test_who_gives_up_at_the_very_moment_of_his_turn_passes_the_place_on() -> None:
    bounds = ConcurrencyLimiter[str](per_server=1, total=1)

    async def hold() -> None:
        async with bounds.slot("one"):
            pass

    async with bounds.slot("one"):
        second, third = asyncio.create_task(hold()), asyncio.create_task(hold())
        await CLOCK.sleep(1)
    second.cancel()  # it has its turn now, and has not heard of it
    await asyncio.wait_for(asyncio.wait([second, third]), 1)
    assert (second.cancelled(), third.exception()) == (True, None)
    assert len(bounds) == 0


async def test_places_go_from_server_to_server_among_those_of_one_tenant() -> None:
    bounds = ConcurrencyLimiter[str](per_server=1, total=1)
    order: list[str] = []

    async def hold(server: str) -> None:
        async with bounds.slot(server):
            order.append(server)
            await CLOCK.sleep(1)

    await asyncio.gather(*(hold(server) for server in ("first", "a", "a", "a", "b")))
    assert order == ["first", "a", "b", "a", "a"]
