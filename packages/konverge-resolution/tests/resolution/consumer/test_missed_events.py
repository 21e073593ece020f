"""A request whose end nobody has told of: what the caches have of it stays as it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge.clock import SimulatedClock
from konverge.kube import Object, format_micro_time
from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.consumer.request_source import RequestSource
from konverge_resolution._internal.consumer.requested_definition import PendingFetch

pytestmark = pytest.mark.anyio

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
OWNER: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o", "namespace": "n", "uid": "u"}}


def request(status: str, reason: str) -> Object:
    condition = {"type": "Succeeded", "status": status, "reason": reason, "message": "it is not there"}
    return {
        "metadata": {
            "name": "r",
            "namespace": "n",
            "uid": "v",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"uid": "u"}],
        },
        "spec": {"resolver": "git"},
        "status": {"conditions": [condition], "deadline": format_micro_time(CREATED + timedelta(seconds=60))},
    }


class Deaf:
    """A pass whose caches have not heard of the end."""

    def __init__(self, now: datetime) -> None:
        self.clock = SimulatedClock(now)
        self.owner, self.cluster, self.live = OWNER, self, 0
        self.wake: datetime | None = None

    async def get(self, gvk: object, key: object, *, live: bool = False) -> Object:
        self.live += live
        return request("False", "NotFound") if live else request("Unknown", "ResolutionInProgress")

    def request_requeue(self, at: datetime) -> None:
        self.wake = at


async def test_it_is_waited_for_until_shortly_after_its_deadline() -> None:
    ctx: Any = Deaf(CREATED + timedelta(seconds=10))
    assert await RequestSource("default", timedelta(minutes=1)).fetch(Reference("git"), ctx) == PendingFetch()
    assert (ctx.wake, ctx.live) == (CREATED + timedelta(seconds=65), 0)


async def test_then_the_server_is_asked() -> None:
    ctx: Any = Deaf(CREATED + timedelta(seconds=65))
    with pytest.raises(ResolutionError, match="it is not there") as caught:
        await RequestSource("default", timedelta(minutes=1)).fetch(Reference("git"), ctx)
    assert (caught.value.reason, ctx.live) == (Reason.NOT_FOUND, 1)
