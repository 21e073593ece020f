"""The description of a scenario, and the actions of clients other than the operator."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge.errors import NotFoundError
from konverge.feature import VersionGate
from konverge.kube import Object, ObjectKey
from konverge.mutation import Mutation
from konverge.primitives import PersistentVolume, Primitive
from konverge_cluster.testing import Cluster
from tests.scenarios.scenario_harness import get_at

__all__ = ["LEFT", "MOMENT", "NAME", "NAMESPACE", "VOLUME", "Scenario", "condition", "provides_volume", "reports"]

Outside = Callable[[Cluster, Primitive[Any]], Awaitable[None]]

MOMENT = "2026-01-01T00:00:00Z"
# Placeholders in desired objects for the name and the namespace of a namespaced object.
NAME, NAMESPACE = "NAME_OF_OBJECT", "NAMESPACE_OF_OBJECT"

VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}

LEFT: Mapping[str, Any] = {}
"""Of what suspension does: nothing."""


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """The life of one object of a kind in a component.

    Args:
        kind: Returns the primitive for the desired object and its mutations.
        content: The desired object without its name and namespace.
        change: The mutation that is on from version 2 on.
        changed: The path and the value of that change.
        drift: The patch that another client merges into the object.
        ready: The reason of the ready object.
        first: The first reported status and reason; None if that depends on the speed of the cluster.
        outside: The action that the kind waits for and that no controller of the cluster performs.
        asleep: Fields during suspension; `LEFT` if none changes, None if the object is deleted.
        options: Further arguments of the primitive.
    """

    kind: Callable[..., Primitive[Any]]
    content: Object
    change: Callable[[Any], None]
    changed: tuple[str, Any]
    drift: Object
    ready: str = "Healthy"
    first: str | None = "True Healthy"
    outside: Outside | None = None
    asleep: Mapping[str, Any] | None = field(default_factory=lambda: LEFT)
    options: Object = field(default_factory=dict)

    def primitive(self, name: str, namespace: str, version: str) -> Primitive[Any]:
        """Return the primitive of a sample with that name."""
        content = json.loads(json.dumps(self.content).replace(NAMESPACE, namespace).replace(NAME, name))
        is_cluster_scoped = self.options.get("cluster_scoped") or getattr(self.kind, "is_cluster_scoped", False)
        named = {"name": f"{name}-{namespace}"} if is_cluster_scoped else {"name": name, "namespace": namespace}
        metadata = {**named, "labels": {"part": "sample"}, **content.pop("metadata", {})}
        mutation = Mutation("from-2", self.change, VersionGate.for_range(version, ">=2"))
        return self.kind({"metadata": metadata, **content}, mutations=mutation, **self.options)


def reports(status: Object) -> Outside:
    """Return an action that writes a status as the kind's controller does; GENERATION stands for the object's."""

    async def report(cluster: Cluster, primitive: Primitive[Any]) -> None:
        try:
            live = await cluster.client.get(primitive.gvk, primitive.key)
        except NotFoundError:
            return
        wanted = json.loads(json.dumps(status).replace('"GENERATION"', str(live["metadata"].get("generation", 0))))
        known = live.get("status") or {}
        if any(known.get(name) != value for name, value in wanted.items() if value is not None):
            await cluster.client.update({**live, "status": wanted}, subresource="status")

    return report


async def provides_volume(cluster: Cluster, primitive: Primitive[Any]) -> None:
    """Create a volume for a claim, a new one if an earlier claim has left its own."""
    key = ObjectKey("", f"disk-{cluster.namespace}")
    try:
        live = await cluster.client.get(PersistentVolume.gvk, key)
    except NotFoundError:
        claim = {"name": primitive.key.name, "namespace": cluster.namespace}
        disk = {**VOLUME, "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "", "claimRef": claim}
        manifest = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": key.name}, "spec": disk}
        await cluster.client.create(manifest)
        return
    if get_at(live, "status.phase") == "Released":
        await cluster.client.delete(PersistentVolume.gvk, key)


def condition(condition_type: str, status: str = "True") -> Object:
    words = {"reason": "Tested", "message": "as the test says", "lastTransitionTime": MOMENT}
    return {"type": condition_type, "status": status, "observedGeneration": "GENERATION", **words}
