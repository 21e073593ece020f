"""Sharding as the runtime uses it, on both clusters: every shard has one holder, and each replica its share."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

import pytest

from konverge._internal.runtime.election import ShardAssignment, Sharding, sharding
from konverge._internal.runtime.election.lease_candidate import LEASE
from konverge._internal.runtime.election.shard_view import LABEL, build_member_lease_name
from konverge.clock import SeededEntropy
from konverge.errors import ForbiddenError, NotFoundError
from konverge.kube import ObjectKey
from konverge_cluster._internal.testing.cluster import Cluster
from tests.runtime.election.connections import InterruptibleClient

pytestmark = pytest.mark.anyio


# Exact times and counts are tested in simulated time: a real machine is sometimes late. The tests on both clusters show
# that both servers treat Leases alike, and that the election works over real connections.
in_simulated_time = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])


def late_seconds(cluster: Cluster) -> float:
    """Return the allowed delay of an observation: a real machine is sometimes busy."""
    return 10.0 if cluster.name == "real" else 0.0


def options(cluster: Cluster, shards: int = 8, **changes: Any) -> Sharding:
    """Return the defaults in simulated time, short times in real time."""
    if cluster.name == "real":
        times = {"lease_duration": 6, "renew_deadline": 4, "retry_period": 0.4}
        changes = {key: timedelta(seconds=value) for key, value in times.items()} | changes
    return Sharding("web", cluster.namespace, shards, **changes)


def round_seconds(cluster: Cluster) -> float:
    """Return the time within which connected replicas have agreed."""
    return 10 * options(cluster).retry_period.total_seconds()


class Replica:
    """One replica: it records its events, and can crash."""

    def __init__(
        self, cluster: Cluster, identity: str, shards: int = 8, *, drain_seconds: float = 0.0, **changes: Any
    ) -> None:
        self.identity = identity
        self.connection = InterruptibleClient(cluster.new_client(identity))
        self.events: list[tuple[str, int]] = []
        self.assignment: ShardAssignment
        self._cluster = cluster
        self._options = options(cluster, shards, identity=identity, **changes)
        self._drain_seconds = drain_seconds
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self.assignment = await self._stack.enter_async_context(
            sharding(
                lambda: self.connection,
                self._options,
                self,
                clock=self._cluster.clock,
                entropy=SeededEntropy(sum(self.identity.encode())),
                in_thread=False,
            )
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        self.connection.is_cut = False
        await self._stack.aclose()

    @property
    def held(self) -> frozenset[int]:
        return self.assignment.held

    def may_write(self, shard: int) -> bool:
        return self.assignment.get_permit(shard).seconds_left() > 0

    def on_acquired(self, shard: int) -> None:
        self.events.append(("acquired", shard))

    def on_lost(self, shard: int) -> None:
        self.events.append(("lost", shard))

    async def on_release(self, shard: int) -> None:
        self.events.append(("draining", shard))
        await self._cluster.clock.sleep(self._drain_seconds)
        assert self.may_write(shard)  # the reconciles that end here may still write
        self.events.append(("drained", shard))


class Referee:
    """Check continuously that no shard has two replicas that may write."""

    def __init__(self, cluster: Cluster, *replicas: Replica, every_seconds: float = 0.05) -> None:
        self._cluster = cluster
        self._every_seconds = every_seconds
        self._replicas = replicas

    async def __aenter__(self) -> None:
        self._looking = asyncio.create_task(self._look())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._looking.cancel()
        (result,) = await asyncio.gather(self._looking, return_exceptions=True)
        if isinstance(result, AssertionError):
            raise result

    async def _look(self) -> None:
        while True:
            for shard in range(8):
                writers = [each.identity for each in self._replicas if each.may_write(shard)]
                assert len(writers) <= 1, (shard, writers)
            await self._cluster.clock.sleep(self._every_seconds)


def sizes(*replicas: Replica) -> list[int]:
    return sorted(len(each.held) for each in replicas)


def all_held(*replicas: Replica) -> bool:
    return sorted(shard for each in replicas for shard in each.held) == list(range(8))


async def wait_until_shared(
    cluster: Cluster, expected: list[int], *replicas: Replica, timeout_seconds: float = 60.0
) -> None:
    await cluster.eventually(
        lambda: all_held(*replicas) and sizes(*replicas) == expected,
        timeout_seconds=timeout_seconds,
        describe=f"{expected} shards each",
    )


async def test_three_replicas_share_eight_shards_and_stay_so(cluster: Cluster) -> None:
    replicas = Replica(cluster, "a"), Replica(cluster, "b"), Replica(cluster, "c")
    async with replicas[0], replicas[1], replicas[2], Referee(cluster, *replicas):
        await wait_until_shared(
            cluster, [2, 3, 3], *replicas, timeout_seconds=round_seconds(cluster) + late_seconds(cluster)
        )
        histories = [list(each.events) for each in replicas]
        await cluster.clock.sleep(round_seconds(cluster))
        assert [each.events for each in replicas] == histories


async def test_when_one_dies_the_others_share_what_it_held_within_the_lease_duration_and_two_seconds(
    cluster: Cluster,
) -> None:
    async with (
        Replica(cluster, "a") as a,
        Replica(cluster, "b") as b,
        Replica(cluster, "c") as c,
        Referee(cluster, a, b, c),
    ):
        await wait_until_shared(cluster, [2, 3, 3], a, b, c)
        await cluster.clock.sleep(3 * options(cluster).retry_period.total_seconds())
        c.connection.is_cut = True
        died_at = cluster.clock.monotonic()
        await wait_until_shared(cluster, [4, 4], a, b)
        assert cluster.clock.monotonic() - died_at <= options(
            cluster
        ).lease_duration.total_seconds() + 2 + late_seconds(cluster)
        assert c.held == frozenset()
        assert [event for event, _ in c.events].count("lost") in (2, 3)


async def test_a_new_replica_gets_its_share_and_every_handover_is_drained_first(cluster: Cluster) -> None:
    async with (
        Replica(cluster, "a", drain_seconds=1.0) as a,
        Replica(cluster, "b", drain_seconds=1.0) as b,
        Referee(cluster, a, b),
    ):
        await wait_until_shared(cluster, [4, 4], a, b)
        before = {each.identity: each.held for each in (a, b)}
        async with Replica(cluster, "c") as c, Referee(cluster, a, b, c):
            await wait_until_shared(
                cluster, [2, 3, 3], a, b, c, timeout_seconds=round_seconds(cluster) + 2 + late_seconds(cluster)
            )
            for each in (a, b):
                given = before[each.identity] - each.held
                assert [shard for event, shard in each.events if event == "drained"] == sorted(given)
                assert [event for event, _ in each.events].count("lost") == 0
            assert len(c.held) in (2, 3)


async def test_a_stopping_replica_hands_over_at_once(cluster: Cluster) -> None:
    async with Replica(cluster, "a") as a, Replica(cluster, "b") as b:
        await wait_until_shared(cluster, [4, 4], a, b)
        await b.stop()
        stopped_at, late = cluster.clock.monotonic(), late_seconds(cluster)
        await wait_until_shared(cluster, [8], a)
        assert cluster.clock.monotonic() - stopped_at <= 2 * options(cluster).retry_period.total_seconds() + 0.5 + late
        with pytest.raises(NotFoundError):
            await cluster.client.get(LEASE, ObjectKey(cluster.namespace, build_member_lease_name("web", 8, "b")))


@pytest.mark.slow
@in_simulated_time
async def test_a_member_that_died_is_swept(cluster: Cluster) -> None:
    async with Replica(cluster, "a") as a, Replica(cluster, "b") as b:
        await wait_until_shared(cluster, [4, 4], a, b)
        b.connection.is_cut = True

        async def members() -> bool:
            found = await cluster.client.list(LEASE, namespace=cluster.namespace, label_selector=f"{LABEL}=web")
            return [each["metadata"]["name"] for each in found.items if "-member-" in each["metadata"]["name"]] == [
                build_member_lease_name("web", 8, "a")
            ]

        await cluster.eventually(members, timeout_seconds=120)


@in_simulated_time
async def test_passes_that_do_not_end_keep_the_shard_until_the_permit_has_run_out(cluster: Cluster) -> None:
    endless = Replica(cluster, "a", drain_seconds=1000.0, release_deadline=timedelta(seconds=1))
    async with endless as a:
        await wait_until_shared(cluster, [8], a)
        async with Replica(cluster, "b") as b, Referee(cluster, a, b):
            await cluster.eventually(lambda: ("draining", 7) in a.events)
            began_at = cluster.clock.monotonic()
            assert a.may_write(7)
            await wait_until_shared(cluster, [4, 4], a, b, timeout_seconds=60)
            # A request from the last moment of the permit has ended before another replica begins.
            times = options(cluster)
            assert cluster.clock.monotonic() - began_at >= (times.lease_duration - times.retry_period).total_seconds()
            assert ("lost", 7) in a.events
            assert ("drained", 7) not in a.events


@in_simulated_time
async def test_replicas_of_another_division_wait_for_the_present_ones(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A rolling update that changes the number of shards."""
    async with Replica(cluster, "old") as old:
        await wait_until_shared(cluster, [8], old)
        with caplog.at_level(logging.WARNING):
            async with Replica(cluster, "new", shards=4) as new:
                await cluster.clock.sleep(round_seconds(cluster))
                assert new.held == frozenset()
                assert "another number of shards than 4" in caplog.text
                await old.stop()
                await cluster.eventually(lambda: new.held == frozenset(range(4)))


@in_simulated_time
async def test_of_two_divisions_that_start_at_once_no_owner_has_two_writers(cluster: Cluster) -> None:
    # Identities with the same letters draw the same delays: both check, see no rival, and take at one moment.
    async with Replica(cluster, "xy", shards=8) as x, Replica(cluster, "yx", shards=4) as y:
        for _ in range(200):
            assert not {shard // 2 for shard in x.held} & y.held
            await cluster.clock.sleep(0.05)
        assert len(cluster.list_requests("xy")) + len(cluster.list_requests("yx")) < 500


@in_simulated_time
async def test_a_missing_permission_to_list_is_one_line_that_names_the_rule(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        replica = Replica(cluster, "a")
        replica.connection.refusal = ForbiddenError("leases is forbidden")
        async with replica as a:
            await cluster.clock.sleep(round_seconds(cluster))
            (line,) = [each.getMessage() for each in caplog.records if "cannot list" in each.getMessage()]
            assert 'verbs ["get", "list", "create", "update", "delete"]' in line
            a.connection.refusal = None
            await wait_until_shared(cluster, [8], a)


@in_simulated_time
async def test_an_unexpected_error_in_a_list_is_logged_once_and_ends_nothing(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    replica = Replica(cluster, "a")
    replica.connection.refusal = RuntimeError("a bug")
    async with replica as a:
        await cluster.clock.sleep(round_seconds(cluster))
        records = [record for record in caplog.records if "cannot list the Leases" in record.getMessage()]
        assert len(records) == 1
        assert records[0].exc_info
        a.connection.refusal = None
        await wait_until_shared(cluster, [8], a)


@pytest.mark.slow
@in_simulated_time
@pytest.mark.parametrize("seed", range(3))
async def test_no_shard_has_two_writers_while_replicas_come_go_and_lose_answers(cluster: Cluster, seed: int) -> None:
    """A quarter of an hour of simulated time."""
    dice = SeededEntropy(seed)
    replicas = [Replica(cluster, name, drain_seconds=0.5) for name in "abcd"]
    async with AsyncExitStack() as stack:
        for each in replicas:
            await stack.enter_async_context(each)
        await stack.enter_async_context(Referee(cluster, *replicas, every_seconds=0.5))
        for _ in range(30):
            await cluster.clock.sleep(dice.uniform(0.0, 60.0))
            troubled = replicas[int(dice.uniform(0, 4))]
            troubled.connection.is_cut = dice.uniform(0, 1) < 0.5
            troubled.connection.loses_answers = dice.uniform(0, 1) < 0.3
        for each in replicas:
            each.connection.is_cut = each.connection.loses_answers = False
        await wait_until_shared(cluster, [2, 2, 2, 2], *replicas, timeout_seconds=120)
