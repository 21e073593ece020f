"""An operator whose connection to the real API server keeps failing.

``python -m bench.soak`` does it for ten minutes.
"""

from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from bench.fault_proxy import FaultProxy, FaultRates
from bench.replica import Replica
from bench.sample_operator import BED, DEPLOYMENT, new_bed
from bench.soak import Soak, install
from konverge.clock import SystemEntropy
from konverge.errors import NotFoundError
from konverge.kube import ObjectKey
from konverge_cluster._internal.testing.cluster_servers import RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real]

FAULTS = FaultRates(drop_watches_seconds=1.0, expire_watches_seconds=3.0, busy_every=25, cut_every=10)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_nothing_drifts_and_nothing_leaks_behind_a_connection_that_keeps_failing(
    real_control_plane: RealCluster, tmp_path: Path
) -> None:
    namespace = f"soak-{SystemEntropy().name_suffix(8)}"
    async with Cluster(RealServer(real_control_plane), namespace) as cluster:
        soak = Soak(real_control_plane, cluster.client, namespace, tmp_path, owners=20, faults=FAULTS, agent=namespace)
        report = await soak.run(12, actions_per_second=6)

    assert report.drift == []
    assert report.failures == []
    assert report.before is not None
    assert report.after is not None
    assert report.after.tasks == report.before.tasks
    assert report.after.threads == report.before.threads
    assert report.after.descriptors <= report.before.descriptors + 2
    assert set(report.faults) >= {
        "watches broken",
        "watches ended",
        "410 as an event",
        "410 as a status",
        "429 answered",
        "503 answered",
        "writes cut before the server has acted",
        "writes cut after the server has acted",
    }


async def test_an_owner_that_has_gone_is_given_up_before_a_late_watch_says_so(
    real_control_plane: RealCluster, tmp_path: Path
) -> None:
    namespace = f"ghost-{SystemEntropy().name_suffix(8)}"
    key = ObjectKey(namespace, "fernery")
    async with (
        Cluster(RealServer(real_control_plane), namespace) as cluster,
        FaultProxy(real_control_plane.kubeconfig) as proxy,
    ):
        await install(cluster.client)
        kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
        replica = Replica(kubeconfig, namespace, tmp_path / "log", operator=namespace)
        async with replica:
            await cluster.client.create(new_bed("fernery", namespace))
            await cluster.wait_for_condition(BED, "fernery")
            proxy.faults = FaultRates(delay_events_seconds=30.0, delay_events_of="beds")
            await cluster.client.delete(BED, key)
            for _ in range(3):  # as the garbage collector does
                with suppress(NotFoundError):
                    await cluster.client.delete(DEPLOYMENT, key)
                await cluster.clock.sleep(2.0)
            with pytest.raises(NotFoundError):
                await cluster.client.get(DEPLOYMENT, key)

        asked = cluster.list_requests(f"konverge/{version('konverge')} ({namespace})")
        refused = [request.verb for request in asked if request.path.endswith("/status") and request.code == 404]
        assert refused == ["update"]
