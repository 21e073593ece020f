"""A kube-apiserver that is killed and comes back under a running operator."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.failover import Garden
from bench.replica import Replica
from bench.soak import install

from konverge.operator import Operator
from konverge.testing import Cluster
from konverge.testing.controlplane import RealCluster
from konverge.testing.servers import RealServer
from tests.operator.shops import CONFIG_MAP, Shop, a_town, settings

pytestmark = [pytest.mark.anyio, pytest.mark.real]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def control_plane() -> AsyncIterator[RealCluster]:
    """One of the test's own: an outage is for nobody else."""
    async with RealCluster() as running:
        yield running


async def test_an_operator_outlives_an_outage_and_nothing_is_lost(control_plane: RealCluster) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    async with Cluster(RealServer(control_plane), "outage") as cluster:
        town = await a_town(cluster)
        client = cluster.new_client("shop-operator")
        running = asyncio.create_task(operator.run(client))
        before = [f"before-{number}" for number in range(20)]
        for name in before:
            await town.open(name)
        await town.until_ready(*before)

        await control_plane.kill_api_server()
        await cluster.clock.sleep(3.0)
        await control_plane.start_api_server()

        await town.change("before-7", greeting="Still here")
        await town.client.delete(CONFIG_MAP, town.key("before-8-settings"))
        await town.open("after")
        await town.until_ready("after", *before)
        await town.until_data("before-7-settings", greeting="Still here")
        await town.until_data("before-8-settings", greeting="Hello")
        assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_process_neither_ends_nor_dies_in_a_long_outage_and_catches_up_after_it(
    control_plane: RealCluster, tmp_path: Path
) -> None:
    names = [f"bed-{number:02}" for number in range(40)]
    async with Cluster(RealServer(control_plane), "long-outage") as cluster:
        await install(cluster.client)
        garden = Garden(control_plane, cluster.client, cluster.namespace, tmp_path)
        replica = Replica(control_plane.kubeconfig, cluster.namespace, tmp_path / "log")
        async with replica:
            await garden.plant(names)
            await cluster.eventually(lambda: garden.writes(replica), describe="the operator is in the middle of it")

            await control_plane.kill_api_server()
            for _ in range(12):
                await cluster.clock.sleep(1.0)
                replica.must_live()
                assert await replica.is_live()
            await control_plane.start_api_server()

            await garden.change(names[:10], "rose")
            assert await garden.until_ready(names) == []
            assert await replica.is_ready()
        assert replica.process.returncode == 0
        assert replica.failures() == []
