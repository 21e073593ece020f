"""An owner of a built-in kind after a crash at every request of its life, and after a request that arrives late.

A Deployment gets two objects, conditions in an annotation, and a finalizer for the waves of its deletion. Its life
runs once to count the requests. Then it runs again for each request: the process dies before the request, or after the
server acted, or the request arrives when everything is over. Fields of the Deployment that belong to others stay.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy
from konverge.component import Component, ComponentBuilder
from konverge.errors import NotFoundError
from konverge.kube import Object
from konverge.operator import Operator, RunOptions
from konverge.options import deletion_wave
from konverge.primitives import ConfigMap
from tests.operator.sample_operator import AGENT, CONFIG_MAP, DEPLOYMENT, OperatorHarness
from tests.simulation.crashing_transport import CrashingTransport

pytestmark = pytest.mark.anyio

Death = Literal["before the request", "after the server acted", "late"]

ANNOTATION = "conditions.konverge.dev/keepers"
FINALIZER = "waves.konverge.dev/keepers"
MARK = "example.com/kept"
PARTS = ("front", "back")


def keep(deployment: Object) -> Component:
    metadata = deployment["metadata"]
    front, back = (
        ConfigMap({"metadata": {"name": f"{metadata['name']}-{part}", "namespace": metadata["namespace"]}})
        for part in PARTS
    )
    builder = ComponentBuilder("objects", condition_type="ObjectsReady")
    return builder.with_resource(front, deletion_wave(1)).with_resource(back, deletion_wave(2)).build()


def build_deployment(town: OperatorHarness, name: str) -> Object:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": town.namespace, "labels": {MARK: name}, "annotations": {MARK: "yes"}},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
    }


class Life:
    """One Deployment, whose operator dies once.

    Args:
        town: The cluster.
        name: The name of the Deployment.
        transport: The transport of the first process.
    """

    def __init__(self, town: OperatorHarness, name: str, transport: CrashingTransport) -> None:
        self._town = town
        self._name = name
        self._transport = transport

    async def run(self) -> None:
        """Create the Deployment, wait until it is ready, and delete it; a second process follows a dead one."""
        town = self._town
        created = await town.client.create(build_deployment(town, self._name))
        await self._run_until(self._is_ready)
        live = await town.client.get(DEPLOYMENT, town.key(self._name))
        metadata = live["metadata"]
        annotations = {name for name in metadata["annotations"] if not name.startswith("deployment.kubernetes.io/")}
        assert live["spec"] == created["spec"]
        assert metadata["labels"] == {MARK: self._name}
        assert annotations == {ANNOTATION, MARK}
        assert metadata["finalizers"] == [FINALIZER]
        await town.client.delete(DEPLOYMENT, town.key(self._name))
        await self._run_until(self._is_gone)

    async def _run_until(self, is_over: Callable[[], Awaitable[bool]]) -> None:
        """Run the operator until the check succeeds; a dead process is followed by one that does not die."""
        while True:
            transport = self._transport

            async def is_over_or_dead(transport: CrashingTransport = transport) -> bool:
                return transport.died.is_set() or await is_over()

            async with self._running(transport):
                await self._town.cluster.eventually(is_over_or_dead, describe=f"{self._name}: {is_over.__name__}")
            if not transport.died.is_set():
                return
            self._transport = CrashingTransport(self._town.cluster.new_transport())

    @asynccontextmanager
    async def _running(self, transport: CrashingTransport) -> AsyncIterator[None]:
        operator = Operator("keepers")
        operator.manages("apps/v1/Deployment", keep, when=self._is_ours)
        client = Client(transport, user_agent=AGENT, clock=self._town.clock)
        options = RunOptions(namespaces=(self._town.namespace,), records_events=False)
        running = asyncio.ensure_future(operator.run(client, options, clock=self._town.clock, entropy=SeededEntropy(3)))
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

    def _is_ours(self, change: Any) -> bool:
        return bool(change.key.name == self._name)

    async def _is_ready(self) -> bool:
        live = await self._town.client.get(DEPLOYMENT, self._town.key(self._name))
        text = (live["metadata"].get("annotations") or {}).get(ANNOTATION, "[]")
        reasons = {condition["type"]: condition["reason"] for condition in json.loads(text)}
        for part in PARTS:
            if not await self._town.exists(CONFIG_MAP, f"{self._name}-{part}"):
                return False
        return reasons == {"ObjectsReady": "Healthy", "Ready": "Healthy"}

    async def _is_gone(self) -> bool:
        return not await self._town.exists(DEPLOYMENT, self._name)


async def live(town: OperatorHarness, name: str, fatal: int, death: Death) -> int:
    """Run one life, check what it leaves, and return the number of its requests until the death."""
    first = CrashingTransport(town.cluster.new_transport(), fatal=fatal, answered=death == "after the server acted")
    await Life(town, name, first).run()
    if first.died.is_set() and death == "late":
        with suppress(NotFoundError):
            await first.deliver_late()

    async def has_no_objects() -> bool:
        names = [name, *(f"{name}-{part}" for part in PARTS)]
        kinds = (DEPLOYMENT, *(CONFIG_MAP for _ in PARTS))
        return not [key for gvk, key in zip(kinds, names, strict=True) if await town.exists(gvk, key)]

    await town.cluster.eventually(has_no_objects, describe=f"nothing of {name} is left")
    return first.sent


async def test_a_deployment_lives_and_dies_without_a_crash(town: OperatorHarness) -> None:
    assert await live(town, "web", 0, "before the request") > 8


@pytest.mark.slow
@pytest.mark.parametrize("death", ["before the request", "after the server acted", "late"])
async def test_a_crash_at_any_request_changes_nothing_for_a_built_in_owner(town: OperatorHarness, death: Death) -> None:
    requests = await live(town, "web-0", 0, death)
    for fatal in range(1, requests + 1):
        await live(town, f"web-{fatal}", fatal, death)
