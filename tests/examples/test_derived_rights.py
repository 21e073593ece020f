"""Each operator of the examples works on the real API server under exactly its derived rights."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
import yaml

from konverge._internal.cli.operator_file import OperatorReference, load_operator
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import Operator, RunOptions
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY
from tests.examples.postgres_surroundings import CLUSTER, Database
from tests.examples.test_budgets import build_deployment, wait_for_reason
from tests.examples.test_postgres import postgres_cluster, read_password, wait_until_gone
from tests.operator.test_permissions_granted import ACCOUNT, acting_as, granting_permissions, takes_effect

EXAMPLES = REPOSITORY / "examples"
WEBAPP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.real_time,
    pytest.mark.slow,
    pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)]),
]


async def live_under_derived_rights(cluster: Cluster, operator: Operator, sample: Object, life: Any) -> None:
    """Run the operator with the rights of its roles while an owner lives; no request may be forbidden."""
    await cluster.install(*map(crd_manifest, operator.defined_resources))
    permissions = derive_permissions(operator.registered.declaration, samples=[sample])
    granted = granting_permissions(cluster, permissions, cluster.namespace)
    async with granted, acting_as(cluster, ACCOUNT) as client:
        await takes_effect(cluster, client, permissions, cluster.namespace)
        running = asyncio.create_task(operator.run(client, RunOptions((cluster.namespace,)), clock=cluster.clock))
        await cluster.client.create(sample)
        await life()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    requests = cluster.list_requests("restricted")
    assert requests
    assert [request for request in requests if request.code == 403] == []


async def test_budgets(cluster: Cluster) -> None:
    async def live() -> None:
        await wait_for_reason(cluster, "Healthy")

    operator = load_operator(OperatorReference(EXAMPLES / "budgets" / "operator.py"))
    await live_under_derived_rights(cluster, operator, build_deployment(cluster), live)


def build_webapp(cluster: Cluster) -> Object:
    webapp: Object = yaml.safe_load((EXAMPLES / "webapp" / "webapp.yaml").read_text())
    webapp["metadata"]["namespace"] = cluster.namespace
    return webapp


async def test_webapp(cluster: Cluster) -> None:

    async def live() -> None:
        await cluster.wait_for_condition(WEBAPP, "shop", reason="Healthy")
        body = {"spec": {"suspended": True, "tracing": False}}
        await cluster.client.patch(WEBAPP, ObjectKey(cluster.namespace, "shop"), body, patch_type="merge")
        await cluster.wait_for_condition(WEBAPP, "shop", reason="Suspended")
        await cluster.client.delete(WEBAPP, ObjectKey(cluster.namespace, "shop"))
        await wait_until_gone(cluster, WEBAPP, "shop")

    operator = load_operator(OperatorReference(EXAMPLES / "webapp" / "operator.py"))
    await live_under_derived_rights(cluster, operator, build_webapp(cluster), live)


@pytest.mark.timeout(300)
async def test_postgres(cluster: Cluster, operator: Operator, database: Database, storage_class: str) -> None:
    async def live() -> None:
        await database.set_superuser(await cluster.eventually(lambda: read_password(cluster, "main-superuser")))

        async def has_backup() -> bool:
            obj = await cluster.client.get(CLUSTER, ObjectKey(cluster.namespace, "main"))
            return bool(obj.get("status", {}).get("lastBackup"))

        await cluster.eventually(has_backup, describe="there is a backup")
        await cluster.client.delete(CLUSTER, ObjectKey(cluster.namespace, "main"))
        await wait_until_gone(cluster, CLUSTER, "main")

    sample = postgres_cluster(cluster, backupEvery="1h", storageClass=storage_class)
    await live_under_derived_rights(cluster, operator, sample, live)
