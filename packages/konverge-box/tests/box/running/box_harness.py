"""The harness for boxes in a cluster, which the tests of this package share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from konverge.client import Client
from konverge.clock import SeededEntropy
from konverge.crd import crd_manifest, find_definition
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import RunOptions
from konverge_box._internal.file import OperatorBox, load_box
from konverge_box._internal.runtime import BoxController
from konverge_cluster.testing import AuditedRequest, Cluster

EXAMPLES = Path(__file__).parents[5] / "examples" / "boxes"
AGENT = "box-operator"
GROUP = "boxes.konverge.test"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SHELF = GroupVersionKind(GROUP, "v1", "Shelf")
BOOK = GroupVersionKind(GROUP, "v1", "Book")

ANYTHING: dict[str, Any] = {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def build_custom_resource(kind: str, **steps: Any) -> dict[str, Any]:
    """Return an entry of ``spec.crds`` whose spec accepts any fields."""
    return {"resource": {"apiVersion": f"{GROUP}/v1", "kind": kind, "schema": ANYTHING}, **steps}


def build_box(name: str = "library", **crds: Any) -> OperatorBox:
    return load_box(build_box_text(name, **crds))


def build_box_text(name: str = "library", **crds: Any) -> str:
    metadata = {"name": name}
    box = {"apiVersion": "konverge.dev/v1alpha1", "kind": "OperatorBox", "metadata": metadata, "spec": {"crds": crds}}
    return yaml.safe_dump(box, sort_keys=False)


def build_config_map(name: str = "{{ metadata.name }}", **data: Any) -> dict[str, Any]:
    return {"name": name, "data": data}


class BoxHarness:
    """A cluster in which boxes run."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.namespace = cluster.namespace
        self.clock = cluster.clock

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def create(self, gvk: GroupVersionKind, name: str, **spec: Any) -> Object:
        metadata = {"name": name, "namespace": self.namespace}
        obj = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}
        return await self.client.create(obj)

    async def get(self, gvk: GroupVersionKind, name: str) -> Object:
        return await self.client.get(gvk, self.key(name))

    async def exists(self, gvk: GroupVersionKind, name: str) -> bool:
        with suppress(NotFoundError):
            await self.get(gvk, name)
            return True
        return False

    async def change(self, gvk: GroupVersionKind, name: str, **spec: Any) -> Object:
        return await self.client.patch(gvk, self.key(name), {"spec": spec}, patch_type="merge")

    async def delete(self, gvk: GroupVersionKind, name: str) -> None:
        live = await self.get(gvk, name)
        await self.client.delete(gvk, self.key(name), uid=live["metadata"]["uid"])

    async def wait_for_condition(
        self, gvk: GroupVersionKind, name: str, reason: str, type: str = "Ready", status: str = "", message: str = ""
    ) -> Condition:
        """Wait until a condition has this reason, status and message."""

        async def has_reason() -> Condition | None:
            found = find_condition(await self.get(gvk, name), type)
            assert found is not None, f"{gvk.kind} {name} has no {type}"
            actual = f"{found.status} {found.reason}: {found.message}"
            matches = found.reason == reason, status in ("", found.status), message in found.message
            assert all(matches), actual
            return found

        return await self.cluster.eventually(has_reason, describe=f"{gvk.kind} {name} has {type} {reason} {message}")

    async def wait_for_data(self, name: str, gvk: GroupVersionKind = CONFIG_MAP, **data: str) -> None:
        async def holds() -> bool:
            found = (await self.get(gvk, name)).get("data") or {}
            assert found == data, found
            return True

        await self.cluster.eventually(holds, describe=f"{gvk.kind} {name} holds {data}")

    async def wait_until_gone(self, gvk: GroupVersionKind, name: str) -> None:
        async def is_gone() -> bool:
            return not await self.exists(gvk, name)

        await self.cluster.eventually(is_gone, describe=f"{gvk.kind} {name} is gone")

    def requests(self) -> list[AuditedRequest]:
        """Return the requests of the operator except watches."""
        return [request for request in self.cluster.list_requests(AGENT) if request.verb != "watch"]

    async def wait_until_quiet(self) -> None:
        """Wait until the cluster's controllers and the operator are steady."""
        await self.cluster.wait_until_steady(AGENT)

    @asynccontextmanager
    async def running(
        self, box: OperatorBox | BoxController, options: RunOptions | None = None, *, client: Client | None = None
    ) -> AsyncIterator[BoxController]:
        """Install the CustomResourceDefinitions of a box, and run it."""
        running = box if isinstance(box, BoxController) else BoxController(box)
        for cls in running.operator.defined_resources:
            await self.client.apply(crd_manifest(cls), field_manager="tests")
            gvk = find_definition(cls).gvk

            async def is_served(gvk: GroupVersionKind = gvk) -> bool:
                await self.client.list(gvk, namespace=self.namespace)
                return True

            await self.cluster.eventually(is_served, describe=f"{gvk} is served")
        client = client or self.cluster.new_client(AGENT)
        options = options or RunOptions(namespaces=(self.namespace,), grace=timedelta(seconds=5))
        task = asyncio.create_task(
            running.operator.run(client, options, clock=self.clock, entropy=SeededEntropy(5)), name=AGENT
        )
        try:
            yield running
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
