from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from contextlib import asynccontextmanager, suppress

import pytest

from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import ConflictError
from konverge.kube import ObjectKey
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, GroupKind
from konverge_cluster._internal.embedded.controllers.driver import ControllerDriver

pytestmark = pytest.mark.anyio

KIND = ("", "ConfigMap")


class Recorder:
    """A controller that runs a function and records the time."""

    def __init__(self, name: str = "recorder", act: Callable[[int], float | None] = lambda count: None) -> None:
        self.name = name
        self.watches: frozenset[GroupKind] | None = frozenset({KIND})
        self.clock = SimulatedClock()
        self.calls: list[tuple[Hashable, float]] = []
        self._act = act

    def keys_for(self, notice: ClusterChange) -> Iterable[Hashable]:
        return (notice.key.name,)

    def reconcile(self, key: Hashable) -> float | None:
        self.calls.append((key, round(self.clock.monotonic(), 3)))
        return self._act(len(self.calls))


def notice(name: str = "a", kind: GroupKind = KIND) -> ClusterChange:
    return ClusterChange("ADDED", kind, ObjectKey("default", name), None, {"metadata": {"name": name, "uid": name}})


@asynccontextmanager
async def playing(*players: Recorder) -> AsyncIterator[ControllerDriver]:
    driver = ControllerDriver(players, SimulatedClock(), SeededEntropy())
    task = asyncio.create_task(driver.run())
    yield driver
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_key_waits_once_however_often_it_is_woken() -> None:
    player = Recorder()
    async with playing(player) as driver:
        for _ in range(3):
            driver.handle_change(notice())
        await player.clock.sleep(1)

    assert player.calls == [("a", 0)]


async def test_changes_of_other_kinds_wake_nobody() -> None:
    player = Recorder()
    async with playing(player) as driver:
        driver.handle_change(notice(kind=("", "Secret")))
        await player.clock.sleep(1)

    assert player.calls == []


async def test_keys_are_worked_on_in_the_order_in_which_they_came() -> None:
    player = Recorder()
    async with playing(player) as driver:
        for name in "cab":
            driver.handle_change(notice(name))
        await player.clock.sleep(1)

    assert [key for key, _ in player.calls] == ["c", "a", "b"]


async def test_a_player_that_asks_to_look_again_is_woken_then() -> None:
    player = Recorder(act=lambda count: 10.0 if count == 1 else None)
    async with playing(player) as driver:
        driver.handle_change(notice())
        await player.clock.sleep(100)

    assert player.calls == [("a", 0), ("a", 10)]


async def test_a_later_answer_replaces_the_timer() -> None:
    player = Recorder(act=lambda count: 10.0 if count == 1 else None)
    async with playing(player) as driver:
        driver.handle_change(notice())
        await player.clock.sleep(5)
        driver.handle_change(notice())
        await player.clock.sleep(100)

    assert player.calls == [("a", 0), ("a", 5)]


async def test_a_conflict_is_tried_again_at_once() -> None:
    def conflict_first(count: int) -> None:
        if count == 1:
            raise ConflictError("the object has been modified")

    player = Recorder(act=conflict_first)
    async with playing(player) as driver:
        driver.handle_change(notice())
        await player.clock.sleep(1)

    assert len(player.calls) == 2
    assert player.calls[1][1] < 0.01


async def test_a_player_that_fails_backs_off_and_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def fail(count: int) -> None:
        raise RuntimeError(f"broken {count}")

    broken, fine = Recorder("broken", fail), Recorder("fine")
    with caplog.at_level(logging.ERROR):
        async with playing(broken, fine) as driver:
            driver.handle_change(notice())
            await fine.clock.sleep(3600)

    waits = [later - earlier for (_, earlier), (_, later) in zip(broken.calls, broken.calls[1:], strict=False)]
    assert fine.calls == [("a", 0)]
    assert waits[0] < 0.01
    assert all(60 <= wait <= 72 for wait in waits[-10:])
    assert "broken: a failed; retrying" in caplog.text


async def test_success_forgets_earlier_failures() -> None:
    def fail_but_the_tenth_time(count: int) -> None:
        if count != 10:
            raise ConflictError("again")

    player = Recorder(act=fail_but_the_tenth_time)
    async with playing(player) as driver:
        driver.handle_change(notice())
        await player.clock.sleep(50)
        player.calls.clear()
        driver.handle_change(notice())
        await player.clock.sleep(0.02)

    assert len(player.calls) > 1
