"""An election between konverge and client-go itself: kube-scheduler campaigns for the same Lease."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from konverge._internal.runtime.election import LeaderElection, leader_election
from konverge._internal.runtime.election.lease_candidate import LEASE
from konverge.kube import Object, ObjectKey
from konverge_cluster._internal.testing.cluster import Cluster
from konverge_cluster.controlplane import find_binaries
from tests.runtime.election.connections import InterruptibleClient

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)]),
]

DURATION, DEADLINE, RETRY = 5, 3, 0.5
LATE = 10  # a real machine is sometimes busy


@asynccontextmanager
async def client_go(cluster: Cluster, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run kube-scheduler as a candidate for the Lease ``web`` of the test's namespace."""
    with (folder / "kube-scheduler.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(find_binaries() / "kube-scheduler"),
            f"--kubeconfig={await cluster.write_kubeconfig()}",
            "--secure-port=0",
            "--leader-elect=true",
            "--leader-elect-resource-name=web",
            f"--leader-elect-resource-namespace={cluster.namespace}",
            f"--leader-elect-lease-duration={DURATION}s",
            f"--leader-elect-renew-deadline={DEADLINE}s",
            f"--leader-elect-retry-period={RETRY}s",
            stdout=log,
            stderr=log,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


def options(cluster: Cluster) -> LeaderElection:
    return LeaderElection(
        "web",
        cluster.namespace,
        "konverge",
        timedelta(seconds=DURATION),
        timedelta(seconds=DEADLINE),
        timedelta(seconds=RETRY),
    )


async def spec(cluster: Cluster) -> Object:
    found: Object = (await cluster.client.get(LEASE, ObjectKey(cluster.namespace, "web")))["spec"]
    return found


async def test_client_go_waits_for_our_lease_and_takes_it_when_it_has_run_out(cluster: Cluster, tmp_path: Path) -> None:
    connection = InterruptibleClient(cluster.new_client("konverge"))
    async with leader_election(lambda: connection, options(cluster), in_thread=False) as ours:
        await ours.wait_until_held()
        async with asyncio.timeout(100), client_go(cluster, tmp_path) as process:
            await cluster.clock.sleep(DURATION + 2)
            assert process.returncode is None
            assert ours.permit.seconds_left() > 0
            assert (await spec(cluster))["leaseTransitions"] == 0
            connection.is_cut = True  # dead to the server: client-go must find that the record expired
            await ours.wait_until_lost()
            assert (await _wait_for_other_holder(cluster))["leaseTransitions"] == 1
            connection.is_cut = False
            await cluster.clock.sleep(DURATION + 2)
            assert not ours.is_held  # and konverge leaves its Lease alone


async def test_we_wait_for_the_lease_of_client_go_and_take_it_when_it_has_died(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with asyncio.timeout(100), client_go(cluster, tmp_path) as process:
        await cluster.eventually(lambda: spec(cluster))
        connection = InterruptibleClient(cluster.new_client("konverge"))
        async with leader_election(lambda: connection, options(cluster), in_thread=False) as ours:
            await cluster.clock.sleep(DURATION + 2)
            assert not ours.is_held
            process.kill()
            died_at = cluster.clock.monotonic()
            await ours.wait_until_held()
            assert cluster.clock.monotonic() - died_at <= DURATION + 2 + LATE
            assert (await spec(cluster))["leaseTransitions"] == 1


async def test_client_go_takes_at_once_what_we_release(cluster: Cluster, tmp_path: Path) -> None:
    connection = InterruptibleClient(cluster.new_client("konverge"))
    async with asyncio.timeout(100):
        async with leader_election(lambda: connection, options(cluster), in_thread=False) as ours:
            await ours.wait_until_held()
        assert (await spec(cluster))["holderIdentity"] == ""
        async with client_go(cluster, tmp_path):
            assert (await _wait_for_other_holder(cluster))["leaseTransitions"] == 1


async def _wait_for_other_holder(cluster: Cluster) -> Object:
    async def find_holder() -> Object | None:
        found = await spec(cluster)
        return found if found["holderIdentity"] not in ("", "konverge") else None

    return await cluster.eventually(find_holder)
