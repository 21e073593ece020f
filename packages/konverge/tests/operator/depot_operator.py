"""An operator whose functions use much of the API, for tests of observed permissions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from konverge.component import Component, ComponentBuilder
from konverge.crd import Metadata, custom_resource
from konverge.errors import AlreadyExistsError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import Operator, OwnerContext, kind_of
from konverge.primitives import ConfigMap

__all__ = ["SURROUNDINGS", "Depot", "DepotSpec", "build_operator"]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SECRET = GroupVersionKind("", "v1", "Secret")
POD = kind_of("v1/Pod")

_LABELS = {"app": "web"}
_CONTAINERS = [{"name": "main", "image": "konverge.test/app:1"}]


@dataclass
class DepotSpec:
    workload: str = "web"


@custom_resource(group="observed.konverge.test", version="v1")
@dataclass
class Depot:
    metadata: Metadata
    spec: DepotSpec


SURROUNDINGS: list[Object] = [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": {"containers": _CONTAINERS}},
        },
    },
    {
        "apiVersion": "observed.konverge.test/v1",
        "kind": "Depot",
        "metadata": {"name": "north"},
        "spec": {"workload": "web"},
    },
]
"""An owner, and what its functions need."""


def notes(depot: Depot) -> Component:
    metadata = {"name": f"{depot.metadata.name}-notes", "namespace": depot.metadata.namespace}
    return (
        ComponentBuilder("notes", condition_type="NotesReady").with_resource(ConfigMap({"metadata": metadata})).build()
    )


async def publish(depot: Depot, ctx: OwnerContext) -> None:
    """Apply, read from the cache, and change a subresource."""
    metadata = {"name": f"{depot.metadata.name}-key", "namespace": depot.metadata.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    await ctx.cluster.apply(secret, field_manager="depots")
    key = ObjectKey(depot.metadata.namespace, depot.spec.workload)
    try:
        workload = await ctx.cluster.get(DEPLOYMENT, key)
    except NotFoundError:
        return
    if workload["spec"]["replicas"] != 1:
        await ctx.cluster.patch(DEPLOYMENT, key, {"spec": {"replicas": 1}}, patch_type="merge", subresource="scale")


async def withdraw(depot: Depot, ctx: OwnerContext) -> None:
    """Delete what has no owner reference."""
    key = ObjectKey(depot.metadata.namespace, f"{depot.metadata.name}-key")
    with suppress(NotFoundError):
        secret = await ctx.cluster.get(SECRET, key, live=True)
        await ctx.cluster.delete(SECRET, key, uid=secret["metadata"]["uid"])


async def count_pods(depot: Depot, ctx: OwnerContext) -> None:
    """List without a cache, create and update."""
    pods = (await ctx.cluster.live.list(POD, namespace=depot.metadata.namespace)).items
    name = f"{depot.metadata.name}-count"
    count = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": depot.metadata.namespace}}
    with suppress(AlreadyExistsError):
        await ctx.cluster.create(count)
    live = await ctx.cluster.get(CONFIG_MAP, ObjectKey(depot.metadata.namespace, name), live=True)
    if live.get("data") != {"pods": str(len(pods))}:
        await ctx.cluster.update(live | {"data": {"pods": str(len(pods))}})


def build_operator() -> Operator:
    operator = Operator("depots")
    operator.manages(Depot, notes, publish)
    operator.finalizes(Depot)(withdraw)
    operator.runs_timer(Depot, interval=timedelta(minutes=10), initial_delay=timedelta(0))(count_pods)
    return operator
