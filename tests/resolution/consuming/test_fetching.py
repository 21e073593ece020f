"""What a process fetches for its own owners: of no namespace so much that others wait for it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest

from konverge.clock import SystemClock
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.operator.context import OwnerContext
from konverge.resolution import Reference
from konverge.resolution.consuming.asked import Underway
from konverge.resolution.consuming.fetching import Fetches
from tests.resolution.library import Library, engine_of

pytestmark = pytest.mark.anyio


class Pass:
    """As much of a pass as a fetch needs: its owner, and when it wants to be run again."""

    owner_gvk = GroupVersionKind("", "v1", "ConfigMap")

    def __init__(self, namespace: str, name: str) -> None:
        self.owner_key, self.owner_uid = ObjectKey(namespace, name), f"uid-of-{name}"
        self.wakes: list[object] = []

    def request_wake(self, at: object) -> None:
        self.wakes.append(at)


async def test_a_namespace_that_asks_for_very_much_waits_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge.resolution.consuming.fetching._AT_ONCE_OF_A_NAMESPACE", 2)
    clock, nobody = SystemClock(), cast("Any", None)
    fetches = Fetches(engine_of(Library()), nobody, clock, "default", timedelta(minutes=1))
    greedy, modest = [Pass("greedy", str(number)) for number in range(3)], Pass("modest", "a")
    for each in (*greedy, modest):
        assert await fetches.fetch(Reference("library", {"path": "a"}), cast("OwnerContext", each)) == Underway()
    await fetches.end()
    assert [bool(each.wakes) for each in (*greedy, modest)] == [False, False, True, False]
