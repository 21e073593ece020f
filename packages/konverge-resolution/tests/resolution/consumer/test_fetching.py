"""What a process fetches for its own owners: of no namespace so much that others wait for it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.operator.owner_context import OwnerContext
from konverge.clock import SimulatedClock, SystemClock
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_resolution import Reference, ResolutionError
from konverge_resolution._internal.consumer.direct_source import DirectSource
from konverge_resolution._internal.consumer.requested_definition import PendingFetch
from tests.resolution.fake_source import FakeSource, build_engine

pytestmark = pytest.mark.anyio


class Pass:
    """As much of a pass as a fetch needs: its owner, and when it wants to be run again."""

    owner_gvk = GroupVersionKind("", "v1", "ConfigMap")

    def __init__(self, namespace: str, name: str) -> None:
        self.owner_key, self.owner_uid = ObjectKey(namespace, name), f"uid-of-{name}"
        self.wakes: list[object] = []

    def request_requeue(self, at: object) -> None:
        self.wakes.append(at)


async def test_a_namespace_that_asks_for_very_much_waits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge_resolution._internal.consumer.direct_source._MAX_PER_NAMESPACE", 2)
    clock, nobody = SystemClock(), cast("Any", None)
    fetches = DirectSource(build_engine(FakeSource()), nobody, clock, "default", timedelta(minutes=1))
    greedy, modest = [Pass("greedy", str(number)) for number in range(3)], Pass("modest", "a")
    for each in (*greedy, modest):
        assert await fetches.fetch(Reference("library", {"path": "a"}), cast("OwnerContext", each)) == PendingFetch()
    await fetches.close()
    assert [bool(each.wakes) for each in (*greedy, modest)] == [False, False, True, False]


async def test_what_has_failed_takes_nobodys_place_and_is_not_kept_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge_resolution._internal.consumer.direct_source._MAX_PER_NAMESPACE", 1)
    monkeypatch.setattr("konverge_resolution._internal.consumer.direct_source._MAX_FAILURES", 2)
    clock, process = SystemClock(), cast("Any", SimpleNamespace(enqueue=lambda *_, **__: None))
    fetches = DirectSource(build_engine(FakeSource()), process, clock, "default", timedelta(minutes=1))
    owners = [Pass("web", str(number)) for number in range(4)]
    wrong = Reference("library", {"pth": "a"})
    for each in owners:
        async with asyncio.timeout(5):
            while await _fetch(fetches, wrong, each) != "failed":
                await clock.sleep(0)
    assert [each.wakes for each in owners] == [[], [], [], []]
    assert [await _fetch(fetches, wrong, each) for each in reversed(owners)] == ["failed", "failed", "failed", "anew"]
    await fetches.close()


class SlowToEnd:
    """As much of an engine as fetches need: nothing comes, and what is cancelled takes a second to end."""

    def __init__(self) -> None:
        self.running = 0

    async def resolve(self, reference: Reference, requester: object) -> None:
        self.running += 1
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await SimulatedClock().sleep(1)
            self.running -= 1


async def test_at_the_end_nothing_is_left_whoever_went_before_and_however_often_it_is_cancelled() -> None:
    engine, clock = cast("Any", SlowToEnd()), SimulatedClock()
    fetches = DirectSource(engine, cast("Any", None), clock, "default", timedelta(minutes=1))
    for name in ("goes", "stays"):
        await fetches.fetch(Reference("library", {"path": "a"}), cast("OwnerContext", Pass("web", name)))
    await clock.sleep(1)
    fetches.on_owner_change(Pass.owner_gvk, cast("ObjectMeta", SimpleNamespace(uid="uid-of-goes")), None)
    ending = asyncio.create_task(fetches.close())
    for _ in range(2):
        await clock.sleep(0.1)
        ending.cancel()
    await asyncio.wait([ending])
    assert (ending.cancelled(), engine.running) == (True, 0)


async def _fetch(fetches: DirectSource, reference: Reference, owner: Pass) -> str:
    try:
        await fetches.fetch(reference, cast("OwnerContext", owner))
    except ResolutionError:
        return "failed"
    return "anew"
