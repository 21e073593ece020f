from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from konverge.clock import SeededEntropy, SimulatedLoop
from konverge.localcluster.players import Players
from tests.localcluster.players.stage import (
    DEPLOYMENT,
    NEVER_READY,
    POD,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    Stage,
    condition,
    deployment,
    service,
    stateful_set,
)

pytestmark = pytest.mark.anyio


async def play(seed: int) -> list[tuple[int, str, str]]:
    """A busy hour on a fresh stage; what was stored, with revisions and full content."""
    stage = Stage(seed=seed)
    playing = asyncio.create_task(stage.players.run())
    await stage.settle()
    stage.create(service())
    stage.create(deployment(replicas=3))
    stage.create(stateful_set())
    await stage.settle()
    stage.set_image(DEPLOYMENT, "web", NEVER_READY)
    stage.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await stage.settle(700)
    stage.delete(DEPLOYMENT, "web", "Foreground")
    await stage.settle(10)
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
    return [(change.revision, change.type, repr(change.new)) for change in stage.changes]


def history(seed: int) -> list[tuple[int, str, str]]:
    """The same on a loop of its own, so that it begins at the same moment."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(play(seed))


def test_the_same_seed_gives_the_same_history() -> None:
    assert history(7) == history(7)


def test_another_seed_gives_other_names() -> None:
    assert history(7) != history(8)


async def test_a_settled_cluster_is_silent(stage: Stage) -> None:
    stage.create(service())
    stage.create(deployment(replicas=3))
    stage.create(deployment("stuck", NEVER_READY, progressDeadlineSeconds=60))
    stage.create(stateful_set())
    await stage.settle(120)
    settled = stage.revision

    await stage.settle(3600)

    assert stage.revision == settled


async def test_new_players_go_on_where_others_stopped() -> None:
    stage = Stage()
    stage.create(deployment(replicas=2))
    first = asyncio.create_task(stage.players.run())
    await stage.clock.sleep(0)
    await stage.clock.sleep(0)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    replica_sets, pods = len(stage.names(REPLICA_SET)), len(stage.names(POD))

    second = asyncio.create_task(Players(stage.api, stage.clock, SeededEntropy()).run())
    await stage.settle()
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second

    assert (replica_sets, pods) == (1, 0)
    assert condition(stage.get(DEPLOYMENT, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")
    assert len(stage.names(POD)) == 2


async def test_cancelled_players_leave_no_subscription_behind() -> None:
    stage = Stage()
    playing = asyncio.create_task(stage.players.run())
    await stage.settle()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing

    stage.create(deployment())
    stage.rules.never_ready("anything")
    await stage.settle()

    assert stage.names(REPLICA_SET) == []


async def test_load_balancers_get_an_address_when_asked_for() -> None:
    stage = Stage(load_balancers=True)
    playing = asyncio.create_task(stage.players.run())
    stage.create(service("one", type="LoadBalancer"))
    stage.create(service("two", type="LoadBalancer"))
    stage.create(service("three"))
    await stage.settle()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing

    one, two, three = (stage.get(SERVICE, name)["status"]["loadBalancer"] for name in ("one", "two", "three"))
    assert one == {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}
    assert two == {"ingress": [{"ip": "192.0.2.2", "ipMode": "VIP"}]}
    assert three == {}


async def test_writes_are_recorded_under_the_names_of_the_real_controllers(stage: Stage) -> None:
    stage.create(deployment())
    await stage.settle()

    (pod,) = stage.all(POD)
    (replica_set,) = stage.all(REPLICA_SET)
    managers = {(each["manager"], each.get("subresource", "")) for each in pod["metadata"]["managedFields"]}
    assert managers == {("kube-controller-manager", ""), ("kubelet", "status")}
    assert {(each["manager"], each.get("subresource", "")) for each in replica_set["metadata"]["managedFields"]} == {
        ("kube-controller-manager", ""),
        ("kube-controller-manager", "status"),
    }
