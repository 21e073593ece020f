"""An operator whose connection to the real API server keeps failing; ``python -m bench.soak`` does it for ten minutes."""

from pathlib import Path

import pytest
from bench.faults import Faults
from bench.soak import Soak

from konverge.clock import SystemEntropy
from konverge.testing import Cluster
from konverge.testing.controlplane import RealCluster
from konverge.testing.servers import RealServer

pytestmark = [pytest.mark.anyio, pytest.mark.real]

FAULTS = Faults(drop_watches_seconds=1.0, expire_watches_seconds=3.0, busy_every=50, cut_every=20)


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
