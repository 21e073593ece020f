"""A process can end at any step: the next one reaches the same state, without duplicates or orphans."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.clock import SimulatedLoop
from tests.box.providers.fake_cloud import (
    FakeCloud,
    FakeCloudProvider,
    FakeOwner,
    SimulatedCrash,
    StepCounter,
    build_pool,
    build_providers,
)

ITEMS = """
{kind: Machine, name: "{{ item.name }}", forEach: {field: spec.machines}, spec: {size: "{{ item.size }}"}}
{kind: Disk, name: "disk-{{ item }}", forEach: {field: spec.disks}, spec: {onDelete: delete}}
"""

machines = st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), max_size=3)
disks = st.sets(st.sampled_from("xy"))
wishes = st.tuples(machines, disks)
crashes = st.lists(st.integers(0, 25), max_size=4)


class Process:
    """Consecutive processes: each has its own memory, all share the cloud and the server."""

    def __init__(self) -> None:
        self.cloud = FakeCloud()
        self.owner = FakeOwner({})

    async def live(self, crash_at: int, *, deletes: bool) -> bool:
        """Reconcile once; return whether the reconcile was completed."""
        self.cloud.steps = self.owner.steps = StepCounter(crash_at)
        step = build_providers(ITEMS, build_pool(FakeCloudProvider(self.cloud)))
        run = step.delete if deletes else step.reconcile
        try:
            done = await run(self.owner.scope(), self.owner.read(), self.owner, self.owner)
        except SimulatedCrash:
            return False
        assert done.problems == ()
        return True

    async def survive(self, wish: tuple[dict[str, int], set[str]] | None, crash_points: list[int]) -> None:
        if wish is not None:
            listed: list[Any] = [{"name": name, "size": size} for name, size in wish[0].items()]
            self.owner.stored["spec"] = {"machines": listed, "disks": sorted(wish[1])}
        for crash_at in crash_points:
            await self.live(crash_at, deletes=wish is None)
        assert await self.live(-1, deletes=wish is None)


def build_expected(wish: tuple[dict[str, int], set[str]]) -> list[tuple[str, str]]:
    made = [(f"Machine {name}", str(size)) for name, size in wish[0].items()]
    return sorted([*made, *((f"Disk disk-{name}", "1") for name in wish[1])])


@pytest.mark.slow
@given(st.lists(st.tuples(wishes, crashes), min_size=1, max_size=3), crashes)
def test_whatever_a_crash_interrupts_the_next_pass_ends_as_if_there_had_been_none(
    lives: list[tuple[tuple[dict[str, int], set[str]], list[int]]], last: list[int]
) -> None:
    async def run() -> None:
        process = Process()
        for wish, crash_points in lives:
            await process.survive(wish, crash_points)
            things = process.cloud.things
            found = sorted((f"{thing['kind']} {thing['name']}", str(thing["size"])) for thing in things.values())
            assert found == build_expected(wish)
            assert sorted(each["handle"] for each in process.owner.annotation()) == sorted(things)
        await process.survive(None, last)
        assert process.cloud.things == {}
        assert process.owner.annotation() == []

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(run())


@pytest.mark.parametrize("crash_at", range(8))
def test_an_owner_that_goes_after_a_crash_leaves_nothing_behind(crash_at: int) -> None:
    async def run() -> None:
        process = Process()
        process.owner.stored["spec"] = {"machines": [{"name": "a", "size": 1}], "disks": ["x"]}
        await process.live(crash_at, deletes=False)

        await process.survive(None, [])

        assert process.cloud.things == {}

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(run())
