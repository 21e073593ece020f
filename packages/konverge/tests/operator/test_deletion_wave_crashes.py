"""The deletion of an owner in waves after a crash at every request, and after a request that arrives late.

The deletion runs once to count its requests. Then it runs again for each request: the process dies before the request,
or after the server acted, or the request arrives when the next process has finished. Every delete request that the
server gets is checked: the objects of earlier waves are gone, and no object is deleted twice.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from konverge.client import Client, Response, StreamingResponse, Transport
from konverge.clock import SeededEntropy
from konverge.errors import NotFoundError
from konverge.kube import ObjectKey
from konverge.operator import Operator, RunOptions
from tests.operator.sample_operator import AGENT, CONFIG_MAP, SHOP, OperatorHarness
from tests.operator.test_deletion_waves import build_operator, cellar, counter
from tests.simulation.crashing_transport import CrashingTransport

pytestmark = pytest.mark.anyio

Death = Literal["before the request", "after the server acted", "late"]
WAVE_OF = {"door": 1, "stairs": 1, "till": 2, "wine": 5}


@dataclass
class WaveCheckingTransport:
    """A transport that checks each deletion before the server gets it.

    Args:
        inner: Sends the requests.
        town: The cluster.
    """

    inner: Transport
    town: OperatorHarness
    deleted: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)

    async def request(self, method: str, path: str, **more: Any) -> Response:
        name = path.rpartition("/")[2].partition("?")[0]
        shop, _, part = name.rpartition("-")
        if method != "DELETE" or "/configmaps/" not in path:
            response: Response = await self.inner.request(method, path, **more)
            return response
        for other, wave in WAVE_OF.items():
            if wave < WAVE_OF[part] and await self._exists(f"{shop}-{other}"):
                self.mistakes.append(f"{part} is deleted while {other} exists")
        response = await self.inner.request(method, path, **more)
        if response.status < 300 and json.loads(response.body)["metadata"].get("deletionTimestamp") is not None:
            self.deleted[part] += 1
        return response

    async def _exists(self, name: str) -> bool:
        try:
            await self.town.client.get(CONFIG_MAP, self.town.key(name))
        except NotFoundError:
            return False
        return True

    def stream(self, method: str, path: str, **more: Any) -> AbstractAsyncContextManager[StreamingResponse]:
        return self.inner.stream(method, path, **more)

    async def close(self) -> None:
        await self.inner.close()


async def delete_shop(town: OperatorHarness, name: str, fatal: int, death: Death) -> int:
    """Create and delete a shop, with a death of the operator during its deletion; return the requests until then."""
    operator = build_operator(counter, cellar)
    async with town.running_operator(operator):
        await town.create_shop(name)
        await town.wait_until_ready(name)
    await town.client.delete(SHOP, town.key(name))
    checking = WaveCheckingTransport(town.cluster.new_transport(), town)
    first = CrashingTransport(checking, fatal=fatal, answered=death == "after the server acted")
    await run_until_gone(town, operator, first, name)
    sent = first.sent
    if fatal:
        await run_until_gone(town, operator, CrashingTransport(checking), name)
        # On a real server, the number of requests varies by the events that a reconcile combines.
        if death == "late" and first.died.is_set():
            await first.deliver_late()
            with suppress(NotFoundError):
                await town.client.get(SHOP, town.key(name))
                raise AssertionError("a late request brought the owner back")
    assert checking.mistakes == []
    assert max(checking.deleted.values()) == 1
    await town.cluster.eventually(lambda: has_no_objects(town, name), describe="all objects are gone")
    return sent


async def run_until_gone(town: OperatorHarness, operator: Operator, transport: CrashingTransport, name: str) -> None:
    """Run the operator until the shop is gone or the process dies."""
    client = Client(transport, user_agent=AGENT, clock=town.clock)
    options = RunOptions(namespaces=(town.namespace,), records_events=False)
    running = asyncio.ensure_future(operator.run(client, options, clock=town.clock, entropy=SeededEntropy(3)))

    async def is_over() -> bool:
        return transport.died.is_set() or not await town.exists(SHOP, name)

    try:
        await town.cluster.eventually(is_over, describe="the shop is gone, or the operator is dead")
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def has_no_objects(town: OperatorHarness, name: str) -> bool:
    found = await town.client.list(CONFIG_MAP, namespace=town.namespace)
    return not [obj for obj in found.items if ObjectKey.of(obj).name.startswith(f"{name}-")]


async def test_the_waves_keep_their_order_without_a_crash(town: OperatorHarness) -> None:
    assert await delete_shop(town, "corner", 0, "before the request") > 8


@pytest.mark.slow
@pytest.mark.parametrize("death", ["before the request", "after the server acted", "late"])
async def test_a_crash_at_any_request_keeps_the_order(town: OperatorHarness, death: Death) -> None:
    requests = await delete_shop(town, "shop-0", 0, death)
    for fatal in range(1, requests + 1):
        await delete_shop(town, f"shop-{fatal}", fatal, death)
