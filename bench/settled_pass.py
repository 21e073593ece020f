"""What a pass costs that finds nothing to do: five objects, each read from a cache and compared with what is desired.

The floor is what no pass can do without: rendering the five desired objects and decoding the five live ones from the
bytes that a cache holds. The objects are what the embedded API server made of a first pass.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from konverge.client import Applied, Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.component import AppliedMemory, Component, ComponentBuilder, ReconcileContext
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping
from konverge.localcluster import LocalCluster
from konverge.primitives import ConfigMap, Deployment, Secret, Service, StatefulSet

_PASSES = 2_000


class _Cached:
    """The engine's client on top of what a cache holds: bytes by key, decoded at each read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.held: dict[tuple[GroupVersionKind, ObjectKey], bytes] = {}

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        return await self._client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        held = self.held.get((gvk, key))
        if held is None:
            raise NotFoundError(f"{key} not found")
        found: Object = msgspec.json.decode(held)
        return found

    async def apply(self, obj: Object, *, field_manager: str) -> Applied:
        applied = await self._client.apply(obj, field_manager=field_manager)
        gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        self.held[gvk, key] = msgspec.json.encode(applied.object)
        return applied

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        raise AssertionError("nothing is updated here")

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> None:
        raise AssertionError("nothing is deleted here")


def _component() -> Component:
    labels = {"app": "web"}

    def named(name: str) -> Object:
        return {"name": name, "namespace": "default", "labels": labels}

    container = {
        "name": "main",
        "image": "nginx:1.29",
        "ports": [{"containerPort": 80}],
        "env": [{"name": f"SETTING_{number}", "value": str(number)} for number in range(5)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    workload = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    return (
        ComponentBuilder("web", condition_type="WebReady")
        .with_resource(ConfigMap({"metadata": named("web"), "data": {"colour": "blue", "size": "xl"}}))
        .with_resource(Secret({"metadata": named("web"), "stringData": {"password": "hunter2"}}))
        .with_resource(Service({"metadata": named("web"), "spec": {"selector": labels, "ports": [{"port": 80}]}}))
        .with_resource(Deployment({"metadata": named("web"), "spec": workload}))
        .with_resource(StatefulSet({"metadata": named("web"), "spec": {**workload, "serviceName": "web"}}))
        .build()
    )


@dataclass(frozen=True)
class _Figures:
    pass_seconds: float
    floor_seconds: float


async def _run() -> _Figures:
    clock = SystemClock()
    async with LocalCluster(clock=clock, entropy=SeededEntropy()) as cluster, Client(cluster.transport()) as client:
        owner = await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "default"}}
        )
        cached = _Cached(client)
        memory = AppliedMemory()
        await _component().reconcile(ReconcileContext(client=cached, owner=owner, clock=clock, memory=memory))

        begin = time.perf_counter()
        for _ in range(_PASSES):
            await _component().reconcile(ReconcileContext(client=cached, owner=owner, clock=clock, memory=memory))
        passes = time.perf_counter() - begin

        begin = time.perf_counter()
        for _ in range(_PASSES):
            _component().preview()
            for held in cached.held.values():
                msgspec.json.decode(held)
        floor = time.perf_counter() - begin
    return _Figures(passes / _PASSES, floor / _PASSES)


def measure() -> Iterator[str]:
    """Run it; a line for the table."""
    figures = asyncio.run(_run())
    yield (
        f"settled pass over 5 objects: {figures.pass_seconds * 1e6:.0f} us; floor (render and decode): "
        f"{figures.floor_seconds * 1e6:.0f} us; ratio {figures.pass_seconds / figures.floor_seconds:.2f}"
    )
