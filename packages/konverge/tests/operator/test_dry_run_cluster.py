"""`ctx.cluster` of a dry run shows the cluster with the writes that are recorded so far."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge._internal.operator.dry_run_cluster import DryRunCluster
from konverge.dry_run import DryRunClient
from konverge.errors import KonvergeError, NotFoundError
from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import CONFIG_MAP

pytestmark = pytest.mark.anyio


class Stage:
    def __init__(self, cluster: Cluster) -> None:
        self.namespace = cluster.namespace
        self.client = DryRunClient(cluster.client)
        indexes = {(CONFIG_MAP, "of"): lambda obj: [str((obj.get("data") or {}).get("of"))]}
        self.view = DryRunCluster(cluster.client, self.client, indexes)

    def map(self, name: str, of: str, **labels: str) -> Object:
        metadata = {"name": name, "namespace": self.namespace, "labels": {"app": "stage", **labels}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"of": of}}

    async def names(self, **labels: str) -> list[str]:
        listed = await self.view.list(CONFIG_MAP, namespace=self.namespace, labels={"app": "stage", **labels})
        return [obj["metadata"]["name"] for obj in listed]


@asynccontextmanager
async def asserting_unchanged(cluster: Cluster) -> AsyncIterator[None]:
    others = "metadata.name!=kube-root-ca.crt"  # a controller creates it at any time
    before = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector=others)
    yield
    after = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector=others)
    assert after.items == before.items


async def test_reads_find_what_the_pass_would_have_written(cluster: Cluster) -> None:
    stage = Stage(cluster)
    stays, goes, moves = [await cluster.client.create(stage.map(name, "old")) for name in ("stays", "goes", "moves")]
    async with asserting_unchanged(cluster):
        await stage.view.apply(stage.map("comes", "new"), field_manager="stage")
        await stage.view.delete(CONFIG_MAP, ObjectKey.of(goes), uid=goes["metadata"]["uid"])
        body = {"metadata": {"labels": {"app": "elsewhere", "gone": None}}, "data": {"of": "new"}}
        moved = await stage.view.patch(CONFIG_MAP, ObjectKey.of(moves), body, patch_type="merge")

        assert await stage.names() == ["comes", "stays"]
        found = await stage.view.list_by_index(CONFIG_MAP, "of", "new")
        assert {obj["metadata"]["name"] for obj in found} == {"comes", "moves"}
        assert moved["metadata"]["labels"] == {"app": "elsewhere"}
        assert (await stage.view.without_read_tracking().get(CONFIG_MAP, ObjectKey.of(stays)))["data"] == {"of": "old"}
        with pytest.raises(NotFoundError):
            await stage.view.get(CONFIG_MAP, ObjectKey.of(goes))
    assert [change.action for change in stage.client.changes] == ["create", "delete", "update"]


async def test_what_only_the_server_can_tell_is_refused(cluster: Cluster) -> None:
    stage = Stage(cluster)
    async with asserting_unchanged(cluster):
        with pytest.raises(KonvergeError, match="uses create of ctx.cluster"):
            await stage.view.create(stage.map("new", "new"))
        with pytest.raises(KonvergeError, match="uses patch of the type json of ctx.cluster"):
            await stage.view.patch(CONFIG_MAP, ObjectKey.of(stage.map("x", "y")), [], patch_type="json")
