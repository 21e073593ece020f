"""One operator reconciles the owners of several clusters in one process."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.component import Component, ComponentBuilder
from konverge.errors import NotFoundError
from konverge.kube import Object, ObjectKey
from konverge.operator import Operator
from konverge.primitives import ConfigMap
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import eventually
from tests.operator.sample_operator import CONFIG_MAP

pytestmark = pytest.mark.anyio


def settings(account: Object) -> Component:
    metadata = {"name": account["metadata"]["name"], "namespace": "default"}
    resource = ConfigMap({"metadata": metadata, "data": {"greeting": account["metadata"]["labels"]["greeting"]}})
    return ComponentBuilder("settings", condition_type="SettingsReady").with_resource(resource).build()


async def read_greeting(client: Client) -> str | None:
    try:
        return str((await client.get(CONFIG_MAP, ObjectKey("default", "home")))["data"]["greeting"])
    except NotFoundError:
        return None


async def test_one_operator_runs_for_two_clusters_at_once() -> None:
    operator = Operator("accounts")
    operator.manages("v1/ServiceAccount", settings)

    async def serve(greeting: str) -> str:
        cluster = LocalCluster(clock=SystemClock(), entropy=SeededEntropy(), controllers=False)
        metadata = {"name": "home", "namespace": "default", "labels": {"greeting": greeting}}
        async with cluster, Client(cluster.transport()) as client, asyncio.TaskGroup() as tasks:
            await client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
            running = tasks.create_task(operator.run(client))
            found = await eventually(lambda: read_greeting(client), clock=SystemClock(), timeout_seconds=30)
            await meeting.wait()  # no run ends before the other one has reconciled
            running.cancel()
        return str(found)

    meeting = asyncio.Barrier(2)
    north, south = await asyncio.gather(serve("Moin"), serve("Servus"))

    assert (north, south) == ("Moin", "Servus")
