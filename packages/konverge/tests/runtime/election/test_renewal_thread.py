"""Renewal in a thread, with a main loop that is really blocked; in real time, over HTTP."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge._internal.runtime.election import (
    LEASE_LOST_EXIT_CODE,
    LeaderElection,
    Leadership,
    Sharding,
    leader_election,
    sharding,
)
from konverge._internal.runtime.election.lease_candidate import LEASE
from konverge.client import Client
from konverge.clock import SystemClock
from konverge.kube import ObjectKey
from konverge_cluster._internal.testing.cluster import Cluster

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

CLOCK = SystemClock()
TIMES = {
    "lease_duration": timedelta(seconds=2),
    "renew_deadline": timedelta(seconds=1.2),
    "retry_period": timedelta(seconds=0.2),
}
# For events that must not have happened yet: a busy machine may be a second late.
LONG_TIMES = {
    "lease_duration": timedelta(seconds=5),
    "renew_deadline": timedelta(seconds=3),
    "retry_period": timedelta(seconds=0.2),
}


def block(seconds: float) -> None:
    """Compute in the event loop, as author code should not."""
    until = CLOCK.monotonic() + seconds
    while CLOCK.monotonic() < until:
        sum(range(1000))


def connecting(kubeconfig: Path, user_agent: str) -> Callable[[], Client]:
    """Return a factory of clients with separate connections."""
    return lambda: Client(HttpTransport(load_kubeconfig(kubeconfig, env={})), user_agent=user_agent)


@asynccontextmanager
async def electing(
    cluster: Cluster,
    identity: str,
    exit_process: Callable[[int], object] = lambda code: None,
    times: Mapping[str, timedelta] = TIMES,
) -> AsyncIterator[Leadership]:
    options = LeaderElection("web", cluster.namespace, identity, **times)
    clients = connecting(await cluster.write_kubeconfig(), identity)
    async with leader_election(clients, options, exit_process=exit_process) as leadership:
        yield leadership


async def holder_of(cluster: Cluster) -> str:
    lease = await cluster.client.get(LEASE, ObjectKey(cluster.namespace, "web"))
    return str(lease["spec"]["holderIdentity"])


def renewing_threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "konverge renewal of Leases"]


# A process with a blocked main loop cannot serve an embedded cluster: another process serves this one.
on_the_real_cluster = pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])


async def test_the_thread_leads_releases_and_ends_with_the_block(cluster: Cluster) -> None:
    async with electing(cluster, "a") as a:
        await a.wait_until_held()
        assert a.permit.seconds_left() > 0
        assert len(renewing_threads()) == 1
        assert await holder_of(cluster) == "a"
    assert await holder_of(cluster) == ""
    assert renewing_threads() == []


async def test_the_block_may_be_left_before_anything_is_held(cluster: Cluster) -> None:
    async with electing(cluster, "a") as a:
        await a.wait_until_held()
        async with electing(cluster, "b") as b:
            assert not b.is_held
        assert len(renewing_threads()) == 1


@on_the_real_cluster
async def test_a_loop_that_is_blocked_for_less_than_the_bound_keeps_its_lease(cluster: Cluster) -> None:
    """Block the loop for less than the limit, but longer than a renewal in the loop itself could wait."""
    async with electing(cluster, "a", times=LONG_TIMES) as a:
        await a.wait_until_held()
        permit = a.permit
        for _ in range(3):
            block(1.7)
            assert permit.seconds_left() > 0
            await CLOCK.sleep(0.3)
        assert await holder_of(cluster) == "a"


@on_the_real_cluster
async def test_a_loop_that_is_blocked_for_longer_loses_its_permit_and_the_culprit_is_named(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    codes: list[int] = []
    with caplog.at_level(logging.INFO):
        async with electing(cluster, "a", codes.append, LONG_TIMES) as a:
            await a.wait_until_held()
            permit = a.permit
            block(6.3)  # limit 3 s, then at most 3 s of permit; only 2 s after that the process is ended
            while permit.seconds_left() > 0:  # a busy machine can notice the limit later
                block(0.05)
            await a.wait_until_lost()
            await a.wait_until_held()
            assert permit.seconds_left() == 0
    assert codes == []
    (blamed,) = [each.getMessage() for each in caplog.records if "has been blocked" in each.getMessage()]
    assert f"{__file__}" in blamed
    assert "in block" in blamed
    assert "sum(range" not in blamed  # no source text


@on_the_real_cluster
async def test_a_loop_that_ignores_the_loss_has_its_process_ended(cluster: Cluster) -> None:
    codes: list[int] = []
    async with electing(cluster, "a", codes.append) as a:
        await a.wait_until_held()
        block(4.0)  # limit 1.2 s, then at most 1.2 s of permit, then a grace of 0.8 s
        assert codes == [LEASE_LOST_EXIT_CODE]


@on_the_real_cluster
async def test_a_stand_by_leads_while_the_other_is_still_blocked_and_never_both(cluster: Cluster) -> None:
    kubeconfig = await cluster.write_kubeconfig()
    options = LeaderElection("web", cluster.namespace, "b", **TIMES)
    seen: list[tuple[float, float]] = []
    codes: list[int] = []
    async with electing(cluster, "a", codes.append) as a:
        await a.wait_until_held()
        permit = a.permit
        stop = threading.Event()

        def stand_by() -> None:
            async def run() -> None:
                async with leader_election(connecting(kubeconfig, "b"), options) as b:
                    while not stop.is_set():
                        seen.append((permit.seconds_left(), b.permit.seconds_left()))
                        await CLOCK.sleep(0.01)

            asyncio.run(run())

        other = threading.Thread(target=stand_by)
        other.start()
        block(6.0)
        stop.set()
        await cluster.eventually(lambda: not other.is_alive())
    assert any(b > 0 for _, b in seen)
    assert all(not (a_left > 0 and b_left > 0) for a_left, b_left in seen)


class Silent:
    """A listener that only records events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []

    def on_acquired(self, shard: int) -> None:
        self.events.append((threading.current_thread().name, shard))

    def on_lost(self, shard: int) -> None:
        self.events.append(("lost", shard))

    async def on_release(self, shard: int) -> None:
        self.events.append(("release", shard))


@pytest.mark.slow
async def test_sharding_in_threads_reports_to_the_main_loop_and_hands_over(cluster: Cluster) -> None:
    kubeconfig = await cluster.write_kubeconfig()
    first, second = Silent(), Silent()

    def options(identity: str) -> Sharding:
        return Sharding("web", cluster.namespace, 4, identity, **TIMES)

    async with sharding(connecting(kubeconfig, "a"), options("a"), first) as a:
        await cluster.eventually(lambda: a.held == frozenset(range(4)))
        assert {thread for thread, _ in first.events} == {threading.current_thread().name}
        async with sharding(connecting(kubeconfig, "b"), options("b"), second) as b:
            await cluster.eventually(lambda: len(a.held) == len(b.held) == 2)
            assert [shard for event, shard in first.events if event == "release"] == sorted(b.held)
            assert ("lost", 2) not in first.events


async def test_a_campaign_that_cannot_be_created_is_reported(cluster: Cluster) -> None:
    def raise_error() -> Client:
        raise ValueError("no client")

    async with leader_election(raise_error, LeaderElection("web", cluster.namespace, "a", **TIMES)) as a:
        with pytest.raises(Exception, match="ended with an unexpected error"):
            await a.wait_until_held()
