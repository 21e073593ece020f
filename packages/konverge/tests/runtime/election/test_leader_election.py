"""Leader election as the runtime uses it, on both clusters."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from konverge._internal.cancellation import await_shielded
from konverge._internal.runtime.election import LeaderElection, Leadership, leader_election
from konverge._internal.runtime.election.lease_candidate import LEASE
from konverge.clock import SeededEntropy
from konverge.errors import ForbiddenError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.testing.cluster import Cluster
from tests.cancellation_leaks import cancel_again, run_loop_turns
from tests.runtime.election.connections import InterruptibleClient

pytestmark = pytest.mark.anyio


# Exact times and counts are tested in simulated time: a real machine is sometimes late. The tests on both clusters show
# that both servers treat Leases alike, and that the election works over real connections.
in_simulated_time = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])


def late_seconds(cluster: Cluster) -> float:
    """Return the allowed delay of an observation: a real machine is sometimes busy."""
    return 10.0 if cluster.name == "real" else 0.0


def options(cluster: Cluster, name: str = "web", **changes: Any) -> LeaderElection:
    """Return the defaults in simulated time, short times in real time."""
    if cluster.name == "real":
        times = {"lease_duration": 6, "renew_deadline": 4, "retry_period": 0.5}
        changes = {key: timedelta(seconds=value) for key, value in times.items()} | changes
    return LeaderElection(name, cluster.namespace, **changes)


@asynccontextmanager
async def electing(
    cluster: Cluster, identity: str, *, seed: int = 0, **changes: Any
) -> AsyncIterator[tuple[Leadership, InterruptibleClient]]:
    connection = InterruptibleClient(cluster.new_client(identity))
    async with leader_election(
        lambda: connection,
        options(cluster, identity=identity, **changes),
        clock=cluster.clock,
        entropy=SeededEntropy(seed),
        in_thread=False,
    ) as leadership:
        yield leadership, connection


async def at_work(cluster: Cluster) -> tuple[asyncio.Task[None], InterruptibleClient]:
    """A process that leads until it is cancelled."""
    held: asyncio.Future[InterruptibleClient] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with electing(cluster, "a") as (a, connection):
            await a.wait_until_held()
            held.set_result(connection)
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    return working, await held


def record(lease: Object) -> dict[str, Any]:
    spec: dict[str, Any] = lease["spec"]
    return spec


async def lease(cluster: Cluster) -> Object:
    return await cluster.client.get(LEASE, ObjectKey(cluster.namespace, "web"))


async def test_one_of_two_leads_and_the_lease_names_it(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, _), electing(cluster, "b", seed=1) as (b, _):
        async with asyncio.timeout(30):
            await asyncio.wait(
                [asyncio.create_task(a.wait_until_held()), waiting := asyncio.create_task(b.wait_until_held())],
                return_when=asyncio.FIRST_COMPLETED,
            )
        await cluster.clock.sleep(options(cluster).lease_duration.total_seconds() + 1)
        leaders = [each for each in (a, b) if each.is_held]
        assert len(leaders) == 1
        assert record(await lease(cluster))["holderIdentity"] == leaders[0].identity
        assert leaders[0].permit.seconds_left() > 0
        assert [each.permit.seconds_left() for each in (a, b) if not each.is_held] == [0.0]
        waiting.cancel()


async def test_a_stand_by_takes_over_within_the_lease_duration_and_two_seconds_of_a_death(cluster: Cluster) -> None:
    times, late = options(cluster), late_seconds(cluster)
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        async with electing(cluster, "b", seed=1) as (b, _):
            await cluster.clock.sleep(4 * times.retry_period.total_seconds())
            connection.is_cut = True  # as good as dead: none of its requests arrives
            died_at = cluster.clock.monotonic()
            async with asyncio.timeout(60):
                await a.wait_until_lost()
                stopped_at = cluster.clock.monotonic()
                await b.wait_until_held()
            assert stopped_at - died_at <= times.renew_deadline.total_seconds() + late
            assert cluster.clock.monotonic() - died_at <= times.lease_duration.total_seconds() + 2 + late
            assert a.permit.seconds_left() == 0
            assert record(await lease(cluster))["leaseTransitions"] == 1
            connection.is_cut = False


@in_simulated_time
@pytest.mark.parametrize("seed", range(10))
async def test_takeover_is_in_time_whatever_the_jitter(cluster: Cluster, seed: int) -> None:
    async with electing(cluster, "a", seed=seed) as (a, connection):
        await a.wait_until_held()
        async with electing(cluster, "b", seed=100 + seed) as (b, _):
            times = options(cluster)
            await cluster.clock.sleep(3 * times.retry_period.total_seconds() + seed * 0.37)
            connection.is_cut = True
            died_at = cluster.clock.monotonic()
            await b.wait_until_held()
            assert cluster.clock.monotonic() - died_at <= times.lease_duration.total_seconds() + 2
            connection.is_cut = False


async def test_a_leader_that_stops_is_followed_within_the_retry_period(cluster: Cluster) -> None:
    async with AsyncExitStack() as stopping:
        a, _ = await stopping.enter_async_context(electing(cluster, "a"))
        await a.wait_until_held()
        async with electing(cluster, "b", seed=1) as (b, _):
            await cluster.clock.sleep(3 * options(cluster).retry_period.total_seconds())
            late = late_seconds(cluster)
            await stopping.aclose()
            stopped_at = cluster.clock.monotonic()
            released = record(await lease(cluster))
            await b.wait_until_held()
            assert cluster.clock.monotonic() - stopped_at <= options(cluster).retry_period.total_seconds() + 0.3 + late
    # Just released, or already taken.
    assert released["holderIdentity"] in ("", "b")


@in_simulated_time
async def test_a_permit_of_an_earlier_term_never_holds_again(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        first = a.permit
        connection.is_cut = True
        await a.wait_until_lost()
        connection.is_cut = False
        await a.wait_until_held()
        assert a.permit.seconds_left() > 0
        assert first.seconds_left() == 0


@in_simulated_time
async def test_a_term_that_ended_unseen_is_lost_although_another_one_has_begun(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        first = a.permit
        connection.is_cut = True
        await cluster.eventually(lambda: first.seconds_left() == 0)
        connection.is_cut = False
        await cluster.eventually(lambda: a.permit.seconds_left() > 0)
        async with asyncio.timeout(0.1):
            await a.wait_until_lost()
        await a.wait_until_held()
        assert a.permit is not first


@in_simulated_time
async def test_a_process_that_stops_while_the_server_is_away_does_not_wait_long_for_it(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        connection.is_cut = True
        began_at = cluster.clock.monotonic()
    assert cluster.clock.monotonic() - began_at <= options(cluster).renew_deadline.total_seconds() / 2 + 0.2


@in_simulated_time
async def test_a_leader_whose_answers_are_lost_leads_on_while_it_can_know(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        first = a.permit
        connection.loses_answers = True
        await cluster.clock.sleep(2 * options(cluster).retry_period.total_seconds())
        connection.loses_answers = False
        await cluster.clock.sleep(2 * options(cluster).renew_deadline.total_seconds())
        assert first.seconds_left() > 0


async def test_a_lease_that_is_deleted_is_made_again_in_a_new_term(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, _):
        await a.wait_until_held()
        first = a.permit
        await cluster.client.delete(LEASE, ObjectKey(cluster.namespace, "web"))
        await a.wait_until_lost()
        await a.wait_until_held()
        assert first.seconds_left() == 0
        assert record(await lease(cluster))["holderIdentity"] == "a"


async def test_a_lease_of_a_dead_client_go_process_is_taken_when_it_has_run_out(cluster: Cluster) -> None:
    duration = int(options(cluster).lease_duration.total_seconds())
    await cluster.client.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "web", "namespace": cluster.namespace},
            "spec": {
                "acquireTime": "2020-01-01T00:00:00.123456Z",
                "holderIdentity": "node_5b0b0c1e-28cd",
                "leaseDurationSeconds": duration,
                "leaseTransitions": 3,
                "renewTime": "2020-01-01T00:00:00.000000Z",
            },
        }
    )
    began_at = cluster.clock.monotonic()
    async with electing(cluster, "a") as (a, _):
        await a.wait_until_held()
        assert duration <= cluster.clock.monotonic() - began_at <= duration + 2 + late_seconds(cluster)
        spec = record(await lease(cluster))
    assert spec["leaseTransitions"] == 4
    # The five fields that client-go reads, in its formats.
    assert set(spec) == {"acquireTime", "holderIdentity", "leaseDurationSeconds", "leaseTransitions", "renewTime"}
    assert spec["leaseDurationSeconds"] == duration
    assert len(spec["renewTime"]) == len("2020-01-01T00:00:00.000000Z")


@in_simulated_time
async def test_a_settled_election_costs_one_request_a_retry_period_and_replica(cluster: Cluster) -> None:
    async with electing(cluster, "a") as (a, _):
        await a.wait_until_held()
        async with electing(cluster, "b", seed=1):
            times = options(cluster)
            await cluster.clock.sleep(times.retry_period.total_seconds() * 2)
            before = {who: len(cluster.list_requests(who)) for who in "ab"}
            await cluster.clock.sleep(times.retry_period.total_seconds() * 10)
            asked = {who: len(cluster.list_requests(who)) - before[who] for who in "ab"}
    assert all(10 <= count <= 16 for count in asked.values())


@in_simulated_time
async def test_a_missing_permission_is_one_line_that_names_the_rule_and_is_tried_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    connection = InterruptibleClient(cluster.new_client("a"))
    connection.refusal = ForbiddenError(
        'leases "web" is forbidden: User "system:serviceaccount:x:y" cannot get resource'
    )
    async with leader_election(lambda: connection, options(cluster), clock=cluster.clock, in_thread=False) as a:
        with caplog.at_level(logging.WARNING):
            await cluster.clock.sleep(3 * options(cluster).retry_period.total_seconds())
        (line,) = [each.getMessage() for each in caplog.records if "cannot get the Lease" in each.getMessage()]
        assert f"Lease {cluster.namespace}/web" in line
        assert 'apiGroups ["coordination.k8s.io"], resources ["leases"], verbs ["get", "create", "update"]' in line
        assert "\n" not in line
        connection.refusal = None
        await a.wait_until_held()


async def test_a_process_that_is_cut_short_lets_the_lease_run_out(cluster: Cluster) -> None:
    working, _ = await at_work(cluster)
    working.cancel()
    await asyncio.wait([working])
    assert record(await lease(cluster))["holderIdentity"] == "a", "a write of its may be on its way still"


async def test_a_process_that_is_cut_short_again_and_again_closes_its_client(cluster: Cluster) -> None:
    working, connection = await at_work(cluster)
    await cancel_again(working, 4)
    await asyncio.wait([working])
    assert connection.is_closed


@in_simulated_time
async def test_an_unexpected_error_in_the_renewal_is_logged_once_and_ends_the_term_only_if_it_lasts(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    retry = options(cluster).retry_period.total_seconds()
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        permit = a.permit
        connection.refusal = RuntimeError("a bug")
        await cluster.clock.sleep(1.5 * retry)
        connection.refusal = None
        await cluster.clock.sleep(2 * retry)
        assert a.permit is permit, "a renewal after it was in time"

        caplog.clear()
        connection.refusal = RuntimeError("a bug")
        await a.wait_until_lost()
        connection.refusal = None
        await a.wait_until_held()

    (record,) = [record for record in caplog.records if "unexpected error" in record.getMessage() and record.exc_info]
    assert record.getMessage() == f"cannot update the Lease {cluster.namespace}/web: unexpected error RuntimeError"


@in_simulated_time
@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"kind": "Status", "apiVersion": "v1", "status": "Success"},
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}, "spec": {}},
    ],
)
async def test_responses_of_a_proxy_establish_no_leader_and_are_survived(cluster: Cluster, answer: Object) -> None:
    async with electing(cluster, "a") as (a, connection):
        await a.wait_until_held()
        connection.other_answer = answer
        await a.wait_until_lost()
        await cluster.clock.sleep(2 * options(cluster).retry_period.total_seconds())
        assert not a.is_held
        connection.other_answer = None
        async with asyncio.timeout(2 * options(cluster).lease_duration.total_seconds()):
            await a.wait_until_held()


async def test_a_lease_that_has_changed_hands_as_often_as_can_be_counted_is_taken(cluster: Cluster) -> None:
    found: Object = {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": "web", "namespace": cluster.namespace},
        "spec": {
            "holderIdentity": "gone",
            "leaseDurationSeconds": 1,
            "renewTime": "2020-01-01T00:00:00.000000Z",
            "leaseTransitions": 2**31 - 1,
        },
    }
    await cluster.client.create(found)

    async with electing(cluster, "a") as (a, _):
        await a.wait_until_held()

    assert record(await lease(cluster))["leaseTransitions"] == 2**31 - 1


async def test_the_identity_is_the_host_and_a_uuid_unless_it_is_given(cluster: Cluster) -> None:
    connection = InterruptibleClient(cluster.new_client("a"))
    async with leader_election(lambda: connection, options(cluster), clock=cluster.clock, in_thread=False) as a:
        await a.wait_until_held()
        host, _, uid = a.identity.rpartition("_")
        assert host
        assert len(uid) == 36
        assert record(await lease(cluster))["holderIdentity"] == a.identity


async def test_a_namespace_that_is_absent_is_said_and_waited_for(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    connection = InterruptibleClient(cluster.new_client("a"))
    absent = LeaderElection("web", f"{cluster.namespace}-absent")
    with caplog.at_level(logging.WARNING):
        async with leader_election(lambda: connection, absent, clock=cluster.clock, in_thread=False) as a:
            await cluster.eventually(lambda: "cannot create the Lease" in caplog.text)
            assert not a.is_held
    with pytest.raises(NotFoundError):
        await cluster.client.get(LEASE, ObjectKey(absent.namespace, "web"))


class SlowToLetGo(InterruptibleClient):
    """A cancelled request takes a moment to end."""

    requests_at_close: int | None = None
    requests = 0

    async def get(self, gvk: GroupVersionKind, key: ObjectKey) -> Object:
        self.requests += 1
        try:
            return await super().get(gvk, key)
        finally:
            await await_shielded(self._let_go())

    async def _let_go(self) -> None:
        await run_loop_turns(9)
        self.requests -= 1

    async def close(self) -> None:
        self.requests_at_close = self.requests


@in_simulated_time
async def test_a_repeated_cancellation_closes_the_client_when_no_request_is_running(
    cluster: Cluster,
) -> None:
    connection = SlowToLetGo(cluster.new_client("a"))
    connection.is_cut = True

    async def elect() -> None:
        async with leader_election(lambda: connection, options(cluster), clock=cluster.clock, in_thread=False) as a:
            await a.wait_until_held()

    electing = asyncio.create_task(elect())
    await cluster.eventually(lambda: connection.requests)
    await cancel_again(electing, 4)
    with pytest.raises(asyncio.CancelledError):
        await electing

    assert connection.requests_at_close == 0
