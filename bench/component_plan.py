"""The cost of a component's plan without changes: ten objects of ten kinds in their desired state.

The engine has no plan apart from its reconcile: to compare each live object and decide that no write is necessary *is*
a reconcile over steady objects. So the bench measures that, by processor time and with the time limit of author
functions, without and with the construction of the component. The floor is the unavoidable work: rendering the ten
desired objects and decoding the ten live ones from a cache's bytes. A reconcile after a restart has no memory and
compares every field.

The embedded API server created the objects in a first reconcile.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass

import msgspec

from bench.object_cache import ObjectCache
from konverge.client import Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.component import AppliedCache, Component, ComponentBuilder, ReconcileContext, TimeLimit
from konverge.kube import Object
from konverge.operator import RunOptions
from konverge.primitives import (
    ConfigMap,
    Deployment,
    HorizontalPodAutoscaler,
    Ingress,
    NetworkPolicy,
    PodDisruptionBudget,
    Role,
    Secret,
    Service,
    ServiceAccount,
)
from konverge_cluster.embedded import LocalCluster

_ROUNDS = 15
_PASSES = 100
_GOAL_MILLISECONDS = 1.0


def component() -> Component:
    """Return a web application of the usual form."""
    labels = {"app": "web"}
    metadata = {"name": "web", "namespace": "default", "labels": labels}
    container = {
        "name": "main",
        "image": "nginx:1.29",
        "ports": [{"containerPort": 80}],
        "env": [{"name": f"SETTING_{number}", "value": str(number)} for number in range(5)],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 80}},
    }
    template = {"metadata": {"labels": labels}, "spec": {"serviceAccountName": "web", "containers": [container]}}
    pods = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    host = {"host": "web.test", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}

    def build_resource(**content: object) -> Object:
        return {"metadata": metadata, **content}

    return (
        ComponentBuilder("web", condition_type="WebReady")
        .with_resource(ServiceAccount(build_resource(automountServiceAccountToken=False)))
        .with_resource(Role(build_resource(rules=[rule])))
        .with_resource(ConfigMap(build_resource(data={"colour": "blue", "size": "xl"})))
        .with_resource(Secret(build_resource(stringData={"password": "hunter2"})))
        .with_resource(Service(build_resource(spec={"selector": labels, "ports": [{"port": 80}]})))
        .with_resource(Deployment(build_resource(spec=pods)))
        .with_resource(Ingress(build_resource(spec={"rules": [host]})))
        .with_resource(
            PodDisruptionBudget(build_resource(spec={"minAvailable": "50%", "selector": {"matchLabels": labels}}))
        )
        .with_resource(NetworkPolicy(build_resource(spec={"podSelector": {"matchLabels": labels}, "ingress": [{}]})))
        .with_resource(HorizontalPodAutoscaler(build_resource(spec={"maxReplicas": 3, "scaleTargetRef": target})))
        .build()
    )


@dataclass(frozen=True)
class _Measurement:
    planned: float
    built_and_planned: float
    restarted: float
    floor: float


async def _milliseconds(work: Callable[[], Awaitable[object]]) -> float:
    """Return the median processor time of one run in milliseconds."""
    found = []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        for _ in range(_PASSES):
            await work()
        found.append((time.process_time() - begin) / _PASSES * 1e3)
    return statistics.median(found)


async def _run() -> _Measurement:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(LocalCluster(clock=clock, entropy=SeededEntropy()))
        client = await stack.enter_async_context(Client(cluster.transport()))
        owner = await client.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": "default"}}
        )
        held = ObjectCache(client)
        limit = stack.enter_context(closing(TimeLimit(RunOptions().function_limit)))
        memory = AppliedCache()
        built = component()

        async def reconcile_once(of: Component, memory: AppliedCache) -> None:
            ctx = ReconcileContext(client=held, owner=owner, clock=clock, applied_cache=memory, time_limit=limit)
            await of.reconcile(ctx)

        async def floor() -> None:
            built.preview()
            for text in held.texts.values():
                msgspec.json.decode(text)

        await reconcile_once(built, memory)
        written = held.writes
        figures = _Measurement(
            planned=await _milliseconds(lambda: reconcile_once(built, memory)),
            built_and_planned=await _milliseconds(lambda: reconcile_once(component(), memory)),
            restarted=await _milliseconds(lambda: reconcile_once(built, AppliedCache())),
            floor=await _milliseconds(floor),
        )
        assert held.writes == written, "something was written over objects that were settled"
    return figures


def measure() -> Iterator[str]:
    """Run the measurement; yield a line for the table."""
    figures = asyncio.run(_run())
    yield (
        f"component plan, 10 objects, nothing to do: {figures.planned:.2f} ms of CPU (goal: <= "
        f"{_GOAL_MILLISECONDS:g}), {figures.built_and_planned:.2f} with the component built anew, "
        f"{figures.restarted:.2f} after a restart; floor (render and decode): {figures.floor:.2f}, "
        f"ratio {figures.planned / figures.floor:.2f}"
    )
