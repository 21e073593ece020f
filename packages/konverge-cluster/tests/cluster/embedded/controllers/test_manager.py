from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from konverge.clock import SeededEntropy, SimulatedLoop
from konverge_cluster.embedded.controllers import ControllerManager
from tests.cluster.embedded.controllers.controller_harness import (
    DEPLOYMENT,
    NEVER_READY,
    POD,
    REPLICA_SET,
    SERVICE,
    STATEFUL_SET,
    ControllerHarness,
    build_deployment,
    build_service,
    build_stateful_set,
    read_condition,
)

pytestmark = pytest.mark.anyio


async def play(seed: int) -> list[tuple[int, str, str]]:
    """A busy hour on a fresh stage; what was stored, with revisions and full content."""
    stage = ControllerHarness(seed=seed)
    playing = asyncio.create_task(stage.players.run())
    await stage.advance()
    stage.create(build_service())
    stage.create(build_deployment(replicas=3))
    stage.create(build_stateful_set())
    await stage.advance()
    stage.set_image(DEPLOYMENT, "web", NEVER_READY)
    stage.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await stage.advance(700)
    stage.delete(DEPLOYMENT, "web", "Foreground")
    await stage.advance(10)
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


async def test_a_settled_cluster_is_silent(stage: ControllerHarness) -> None:
    stage.create(build_service())
    stage.create(build_deployment(replicas=3))
    stage.create(build_deployment("stuck", NEVER_READY, progressDeadlineSeconds=60))
    stage.create(build_stateful_set())
    await stage.advance(120)
    settled = stage.revision

    await stage.advance(3600)

    assert stage.revision == settled


async def test_new_players_go_on_where_others_stopped() -> None:
    stage = ControllerHarness()
    stage.create(build_deployment(replicas=2))
    first = asyncio.create_task(stage.players.run())
    await stage.clock.sleep(0)
    await stage.clock.sleep(0)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    replica_sets, pods = len(stage.list_names(REPLICA_SET)), len(stage.list_names(POD))

    second = asyncio.create_task(ControllerManager(stage.api, stage.clock, SeededEntropy()).run())
    await stage.advance()
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second

    assert (replica_sets, pods) == (1, 0)
    assert read_condition(stage.get(DEPLOYMENT, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")
    assert len(stage.list_names(POD)) == 2


async def test_cancelled_players_leave_no_subscription_behind() -> None:
    stage = ControllerHarness()
    playing = asyncio.create_task(stage.players.run())
    await stage.advance()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing

    stage.create(build_deployment())
    stage.rules.never_ready("anything")
    await stage.advance()

    assert stage.list_names(REPLICA_SET) == []


async def test_load_balancers_get_an_address_when_asked_for() -> None:
    stage = ControllerHarness(load_balancers=True)
    playing = asyncio.create_task(stage.players.run())
    stage.create(build_service("one", type="LoadBalancer"))
    stage.create(build_service("two", type="LoadBalancer"))
    stage.create(build_service("three"))
    await stage.advance()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing

    one, two, three = (stage.get(SERVICE, name)["status"]["loadBalancer"] for name in ("one", "two", "three"))
    assert one == {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}
    assert two == {"ingress": [{"ip": "192.0.2.2", "ipMode": "VIP"}]}
    assert three == {}


async def test_writes_are_recorded_under_the_names_of_the_real_controllers(stage: ControllerHarness) -> None:
    stage.create(build_deployment())
    await stage.advance()

    (pod,) = stage.list_objects(POD)
    (replica_set,) = stage.list_objects(REPLICA_SET)
    managers = {(each["manager"], each.get("subresource", "")) for each in pod["metadata"]["managedFields"]}
    assert managers == {("kube-controller-manager", ""), ("kubelet", "status")}
    assert {(each["manager"], each.get("subresource", "")) for each in replica_set["metadata"]["managedFields"]} == {
        ("kube-controller-manager", ""),
        ("kube-controller-manager", "status"),
    }
