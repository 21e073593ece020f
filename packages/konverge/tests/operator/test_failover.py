"""Replicas of an operator that are killed, stopped and frozen: processes of ``konverge run`` on the real control plane.

Who wrote what is read from the API server's audit log. ``python -m bench.failover`` measures the same with the
default Leases.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.failover import FailoverBench, freeze_leader, kill_leader, kill_one_of_three, stop_leader
from konverge.clock import SystemEntropy
from konverge_cluster._internal.testing.cluster_servers import RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(400)]

LEASE_SECONDS = 10  # shorter ones are lost on a busy machine without anybody having failed
RETRY_SECONDS = LEASE_SECONDS * 2 / 15
LATE_SECONDS = 30  # a machine that has other things to do as well; what is in time on an idle one, the benchmark shows
LAST_EVENTS_SECONDS = 2  # for so long at most the last events go out before the Lease is given up


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def garden(real_control_plane: RealCluster, tmp_path: Path) -> AsyncIterator[FailoverBench]:
    namespace = f"garden-{SystemEntropy().name_suffix(8)}"
    async with Cluster(RealServer(real_control_plane), namespace) as cluster:
        yield FailoverBench(real_control_plane, cluster.client, namespace, tmp_path, LEASE_SECONDS)


async def test_a_leader_that_is_killed_in_the_middle_of_200_creations_leaves_nothing_undone_or_done_twice(
    garden: FailoverBench,
) -> None:
    found = await kill_leader(garden, 200)

    assert found.not_ready == []
    assert found.seconds <= LEASE_SECONDS + 2 + LATE_SECONDS
    assert found.leader_writes > 200
    assert found.follower_writes > 200
    assert found.shared_children == []
    # The status of a bed whose Deployment was not observed yet at that moment has to be written once more.
    assert found.needless == []
    assert found.late_writes == []


async def test_a_leader_that_is_told_to_stop_hands_over_at_once(garden: FailoverBench) -> None:
    found = await stop_leader(garden)

    assert found.not_ready == []
    assert found.lease_seconds <= LAST_EVENTS_SECONDS + RETRY_SECONDS + 1 + LATE_SECONDS
    assert found.shared_children + found.cut_short == []
    assert found.needless == []
    assert found.late_writes == []


async def test_a_leader_that_stood_still_for_longer_than_its_lease_writes_nothing_when_it_wakes(
    garden: FailoverBench,
) -> None:
    found = await freeze_leader(garden)

    assert found.not_ready == []
    assert found.seconds <= LEASE_SECONDS + 2 + LATE_SECONDS
    assert found.woken_writes == []
    assert found.late_writes == []
    assert found.shared_children == []
    assert found.needless == []


async def test_three_replicas_divide_the_owners_and_two_take_over_those_of_one_that_is_killed(
    garden: FailoverBench,
) -> None:
    found = await kill_one_of_three(garden)

    assert found.not_ready == []
    assert sorted(found.shards.values()) == [2, 3, 3]
    assert found.two_writers == []
    assert found.overlaps == []
    # What a replica holds in memory is its beds and their three children each: nothing of the others'.
    assert {name: 4 * beds for name, beds in found.writers.items()} == found.objects
    assert found.seconds <= LEASE_SECONDS + 10 + LATE_SECONDS
