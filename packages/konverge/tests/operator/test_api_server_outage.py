"""A kube-apiserver is killed and restarted under a running operator."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from bench.failover import FailoverBench
from bench.replica import Replica
from bench.soak import install
from konverge._internal.cache import InformerFactory
from konverge.kube import GroupVersionKind
from konverge.observability import ObservabilityOptions
from konverge.operator import Operator, RunOptions
from konverge_cluster._internal.testing.cluster_servers import RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import CONFIG_MAP, Shop, find_free_address, settings, start_harness

pytestmark = [pytest.mark.anyio, pytest.mark.real]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def control_plane() -> Iterator[RealCluster]:
    """One of these tests' own: an outage is for nobody else."""
    with RealCluster() as running:
        yield running


@asynccontextmanager
async def outage(control_plane: RealCluster) -> AsyncIterator[None]:
    """The server is away within the block, and back afterwards, whatever was found."""
    await control_plane.kill_api_server()
    try:
        yield
    finally:
        await control_plane.start_api_server()


async def test_an_operator_outlives_an_outage_and_nothing_is_lost(control_plane: RealCluster) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    async with Cluster(RealServer(control_plane), "outage") as cluster:
        town = await start_harness(cluster)
        client = cluster.new_client("shop-operator")
        running = asyncio.create_task(operator.run(client))
        before = [f"before-{number}" for number in range(20)]
        for name in before:
            await town.create_shop(name)
        await town.wait_until_ready(*before)

        async with outage(control_plane):
            await cluster.clock.sleep(3.0)

        await town.change("before-7", greeting="Still here")
        await town.client.delete(CONFIG_MAP, town.key("before-8-settings"))
        await town.create_shop("after")
        await town.wait_until_ready("after", *before)
        await town.wait_for_data("before-7-settings", greeting="Still here")
        await town.wait_for_data("before-8-settings", greeting="Hello")
        assert not running.done()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_an_operator_that_starts_before_its_server_works_as_soon_as_that_does(control_plane: RealCluster) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    async with Cluster(RealServer(control_plane), "early-start") as cluster:
        town = await start_harness(cluster)
        await town.create_shop("corner")
        async with outage(control_plane):
            options = RunOptions((cluster.namespace,), checks_permissions=True)
            running = asyncio.create_task(operator.run(cluster.new_client("shop-operator"), options))
            await cluster.clock.sleep(3.0)
            assert not running.done()

        await town.wait_until_ready("corner")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_after_an_outage_one_watch_that_is_open_again_brings_back_all(control_plane: RealCluster) -> None:
    kinds = [
        GroupVersionKind(*found)
        for found in (
            ("", "v1", "ConfigMap"), ("", "v1", "Secret"), ("", "v1", "Service"), ("", "v1", "Pod"),
            ("apps", "v1", "Deployment"), ("apps", "v1", "StatefulSet"), ("batch", "v1", "Job"),
            ("batch", "v1", "CronJob"),
        )
    ]  # fmt: skip
    async with (
        Cluster(RealServer(control_plane), "flapping") as cluster,
        InformerFactory(cluster.new_client("informers")) as informers,
    ):
        followed = [await informers.get_informer(gvk) for gvk in kinds]
        async with outage(control_plane):
            await cluster.clock.sleep(25.0)

        await cluster.eventually(lambda: any(each.last_error is None for each in followed), 60, "one is open again")
        first = cluster.clock.monotonic()
        await cluster.eventually(lambda: all(each.last_error is None for each in followed), 60, "all are open again")

        assert cluster.clock.monotonic() - first <= 6.0


async def test_readyz_says_no_while_the_server_is_away_and_yes_when_it_is_back(control_plane: RealCluster) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    probes = find_free_address()
    serving = ObservabilityOptions("0", probes, freshness=timedelta(seconds=5))
    async with Cluster(RealServer(control_plane), "readiness") as cluster, aiohttp.ClientSession() as session:

        async def readiness() -> str:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://{probes}/readyz?verbose") as answer:
                    return await answer.text()
            return ""

        async def is_ready() -> bool:
            # Changes prove at once that the caches are fresh; without any, a bookmark does within a minute.
            await town.change("corner", greeting=f"Hello number {cluster.clock.monotonic()}")
            return "readyz check passed" in await readiness()

        async def is_stale() -> bool:
            return "[-]informers-fresh failed: older than 5 s" in await readiness()

        async with cluster.run_operator(operator, RunOptions((cluster.namespace,), observability=serving)):
            town = await start_harness(cluster)
            await town.create_shop("corner")
            await cluster.eventually(is_ready, describe="the operator is ready")

            async with outage(control_plane):
                await cluster.eventually(is_stale, describe="the operator says that what it holds is old")

            await cluster.eventually(is_ready, 60, "the operator is ready again")


async def test_a_process_neither_ends_nor_dies_in_a_long_outage_and_catches_up_after_it(
    control_plane: RealCluster, tmp_path: Path
) -> None:
    names = [f"bed-{number:02}" for number in range(40)]
    async with Cluster(RealServer(control_plane), "long-outage") as cluster:
        await install(cluster.client)
        garden = FailoverBench(control_plane, cluster.client, cluster.namespace, tmp_path)
        replica = Replica(control_plane.kubeconfig, cluster.namespace, tmp_path / "log")
        async with replica:
            await garden.create_owners(names)
            await cluster.eventually(lambda: garden.writes(replica), describe="the operator is in the middle of it")

            async with outage(control_plane):
                for _ in range(12):
                    await cluster.clock.sleep(1.0)
                    replica.check_alive()
                    assert await replica.is_live()

            await garden.change(names[:10], "rose")
            assert await garden.wait_until_ready(names) == []
            assert await replica.is_ready()
        assert replica.process.returncode == 0
        assert replica.failures() == []
