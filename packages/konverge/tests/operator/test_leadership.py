"""Several replicas of one operator, on either cluster: one leads, or each has its shards."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta

import aiohttp
import pytest

from konverge._internal.kube import format_micro_time
from konverge._internal.operator.process_builder import build_process
from konverge._internal.runtime import Process
from konverge.clock import SystemEntropy
from konverge.component import Component, ComponentBuilder
from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind
from konverge.observability import ObservabilityOptions
from konverge.operator import Operator, OwnerContext, Result, RunOptions
from konverge.primitives import Secret
from konverge.runtime import LeaderElection, Sharding
from tests.operator.sample_operator import (
    CONFIG_MAP,
    LOOSE_SHOP,
    SECRET,
    SHOP,
    LooseShop,
    OperatorHarness,
    Shop,
    find_free_address,
    pages,
    settings,
)

pytestmark = pytest.mark.anyio

LEASE = timedelta(seconds=4)
LEASES = GroupVersionKind("coordination.k8s.io", "v1", "Lease")


class Replica:
    """One process of the operator, as far as a test can have one: a client and a run of its own."""

    def __init__(self, town: OperatorHarness, name: str, process: Process) -> None:
        self._town = town
        self.name = name
        self.process = process
        self.task = asyncio.create_task(process.run(), name=name)

    def held(self, gvk: GroupVersionKind) -> set[str]:
        """The names of the objects of a kind that it holds in memory."""
        informer = self.process.informers.running.get(gvk)
        return set() if informer is None else {meta.name for meta in informer.store.iter_metadata()}

    def writes(self) -> list[str]:
        """The paths that it has written to; Leases and events aside, and what the server did not do."""
        return [
            request.path.partition("?")[0]
            for request in self._town.cluster.list_requests(self.name)
            if request.verb not in {"get", "list", "watch"}
            and request.code in {200, 201}
            and "/leases" not in request.path
            and "/events" not in request.path
        ]

    def lists(self) -> list[str]:
        return [
            request.path.partition("?")[0]
            for request in self._town.cluster.list_requests(self.name)
            if request.verb in {"list", "watch"} and "/leases" not in request.path
        ]

    async def stop(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


@asynccontextmanager
async def replica(
    town: OperatorHarness, name: str, leases: LeaderElection | Sharding, operator: Operator | None = None
) -> AsyncIterator[Replica]:
    if operator is None:
        operator = Operator("shops")
        operator.manages(Shop, settings, pages)
    client = town.cluster.new_client(name)
    options = RunOptions((town.namespace,), leases=leases)
    process = build_process(operator.registered, client, options, clock=town.clock, entropy=SystemEntropy())
    running = Replica(town, name, process)
    try:
        yield running
    finally:
        await running.stop()


def election(town: OperatorHarness, identity: str) -> LeaderElection:
    return LeaderElection(
        "shops",
        town.namespace,
        identity=identity,
        lease_duration=LEASE,
        renew_deadline=timedelta(seconds=3),
        retry_period=timedelta(seconds=0.5),
    )


def shards(town: OperatorHarness, identity: str) -> Sharding:
    return Sharding(
        "shops",
        town.namespace,
        4,
        identity=identity,
        lease_duration=LEASE,
        renew_deadline=timedelta(seconds=3),
        retry_period=timedelta(seconds=0.5),
    )


async def test_a_stand_by_writes_nothing_and_takes_over_without_a_list(town: OperatorHarness) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(replica(town, "replica-1", election(town, "one")))
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        second = await stack.enter_async_context(replica(town, "replica-2", election(town, "two")))
        await town.cluster.eventually(lambda: len(set(second.lists())) >= 3, describe="the stand-by has warmed up")
        assert second.writes() == []

        await first.stop()
        listed = set(second.lists())
        await town.create_shop("market")
        await town.wait_until_ready("market")

        assert set(second.lists()) == listed, "of no kind that the stand-by did not hold already"
        assert second.writes() != []
        assert not set(first.writes()) & set(second.writes())


@pytest.mark.slow
async def test_no_object_is_written_by_both_when_the_leader_ends_in_the_middle(town: OperatorHarness) -> None:
    names = [f"shop-{number:02}" for number in range(60)]
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(replica(town, "replica-1", election(town, "one")))
        await town.create_shop("warm-up")
        await town.wait_until_ready("warm-up")
        second = await stack.enter_async_context(replica(town, "replica-2", election(town, "two")))
        for name in names:
            await town.create_shop(name, replicas=0)
        await town.cluster.eventually(lambda: len(first.writes()) >= 40, describe="the leader is in the middle of it")
        await first.stop()
        await town.wait_until_ready(*names)

        children: dict[str, set[str]] = defaultdict(set)
        for running in (first, second):
            for path in running.writes():
                if "/shops/" not in path:
                    children[path].add(running.name)
        assert second.writes()
        assert len(children) >= 2 * len(names)
        twice = {path for path, writers in children.items() if len(writers) > 1}
        holders = [
            request for request in town.cluster.list_requests("replica-1") if request.path.partition("?")[0] in twice
        ]
        holders += [
            request for request in town.cluster.list_requests("replica-2") if request.path.partition("?")[0] in twice
        ]
        assert twice == set(), holders


async def test_shards_share_the_owners_out_and_hold_only_their_own(town: OperatorHarness) -> None:
    names = [f"shop-{number:02}" for number in range(16)]
    async with AsyncExitStack() as stack:
        replicas = [
            await stack.enter_async_context(replica(town, f"replica-{number}", shards(town, str(number))))
            for number in (1, 2)
        ]
        for name in names:
            await town.create_shop(name, replicas=0)
        await town.wait_until_ready(*names)
        one, other = replicas

        def is_shared_out() -> bool:
            held = one.held(SHOP), other.held(SHOP)
            return held[0] | held[1] == set(names) and not held[0] & held[1] and all(held)

        await town.cluster.eventually(is_shared_out, describe="each holds its own part, and no other")
        for running in replicas:
            assert running.held(CONFIG_MAP) == {f"{name}-settings" for name in running.held(SHOP)}
        for name in names:
            await town.change(name, greeting="Ahoy")
        for name in names:
            await town.wait_for_data(f"{name}-settings", greeting="Ahoy")

        await replicas[0].stop()
        await town.client.delete(CONFIG_MAP, town.key(f"{names[0]}-settings"))
        await town.client.delete(CONFIG_MAP, town.key(f"{names[1]}-settings"))
        for name in names:
            await town.wait_for_data(f"{name}-settings", greeting="Ahoy")

    assert all(running.writes() for running in replicas)


async def test_a_stand_by_that_was_there_before_any_owner_is_warm_too(town: OperatorHarness) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(replica(town, "replica-1", election(town, "one")))
        await town.cluster.eventually(lambda: first.process.controllers, describe="the first one works")
        second = await stack.enter_async_context(replica(town, "replica-2", election(town, "two")))
        await town.create_shop("corner")
        await town.wait_until_ready("corner")

        await town.cluster.eventually(
            lambda: second.held(CONFIG_MAP) >= {"corner-settings"}, describe="the stand-by holds what belongs to it"
        )
        assert second.writes() == []


@pytest.mark.slow
async def test_a_stand_by_warms_up_for_each_kind_of_owners(town: OperatorHarness) -> None:
    await town.cluster.install(crd_manifest(LooseShop))
    for number in range(100):
        await town.create_shop(f"shop-{number:03}")
    loose = {"apiVersion": LOOSE_SHOP.api_version, "kind": LOOSE_SHOP.kind, "spec": {}}
    await town.client.create({**loose, "metadata": {"name": "kiosk", "namespace": town.namespace}})
    operator = Operator("shops")
    operator.manages(Shop, settings)
    operator.manages(LooseShop, build_till)
    leader = RunOptions((town.namespace,), leases=election(town, "one"))
    async with town.running_operator(operator, leader):
        await town.wait_until_ready("shop-099")
        async with replica(town, "replica-2", election(town, "two"), operator) as second:
            await town.cluster.eventually(
                lambda: SECRET in second.process.informers.running, describe="the stand-by caches the second kind"
            )


def build_till(shop: LooseShop) -> Component:
    obj = {"metadata": {"name": f"{shop.metadata.name}-till", "namespace": shop.metadata.namespace}}
    return ComponentBuilder("till", condition_type="TillReady").with_resource(Secret(obj)).build()


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_replica_without_the_lease_reports_no_owners(town: OperatorHarness) -> None:
    """Another replica counts them: two that report the same owners make every sum wrong."""
    operator = Operator("shops")
    operator.manages(Shop, settings)

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result:
        return Result()

    address = find_free_address()
    options = RunOptions(
        (town.namespace,),
        leases=election(town, "one"),
        observability=ObservabilityOptions(address, "0"),
    )
    async with town.running_operator(operator, options), aiohttp.ClientSession() as session:

        async def list_samples() -> list[str]:
            async with session.get(f"http://{address}/metrics") as answer:
                lines = (await answer.text()).splitlines()
            return [line for line in lines if line.startswith(("konverge_conditions{", "konverge_deleting_owners{"))]

        await town.create_shop("corner")
        await town.create_shop("market")
        await town.wait_until_ready("corner", "market")
        await town.client.delete(SHOP, town.key("corner"))
        await town.wait_for_condition("corner", "Deleting")
        assert 'konverge_deleting_owners{controller="shop"} 1.0' in await list_samples()

        await take_lease(town)
        await town.cluster.eventually(
            lambda: has_no_owners(list_samples), describe="the replica that lost the Lease reports no owners"
        )
    await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": None}}, patch_type="merge")


async def take_lease(town: OperatorHarness) -> None:
    """Hold the Lease as another replica that never ends."""
    spec = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "renewTime": format_micro_time(town.clock.now())}
    await town.client.patch(LEASES, town.key("shops"), {"spec": spec}, patch_type="merge")


async def has_no_owners(list_samples: Callable[[], Awaitable[list[str]]]) -> bool:
    return await list_samples() == ['konverge_deleting_owners{controller="shop"} 0.0']
