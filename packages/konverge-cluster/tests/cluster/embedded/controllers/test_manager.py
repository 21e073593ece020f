from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from konverge.clock import SeededEntropy, SimulatedLoop
from konverge_cluster._internal.embedded.controllers import ControllerManager
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
    """Run a busy hour in a new harness; return the stored changes with revisions and full content."""
    harness = ControllerHarness(seed=seed)
    playing = asyncio.create_task(harness.players.run())
    await harness.advance()
    harness.create(build_service())
    harness.create(build_deployment(replicas=3))
    harness.create(build_stateful_set())
    await harness.advance()
    harness.set_image(DEPLOYMENT, "web", NEVER_READY)
    harness.set_image(STATEFUL_SET, "db", "konverge.test/app:2")
    await harness.advance(700)
    harness.delete(DEPLOYMENT, "web", "Foreground")
    await harness.advance(10)
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing
    return [(change.revision, change.type, repr(change.new)) for change in harness.changes]


def history(seed: int) -> list[tuple[int, str, str]]:
    """Return the same from its own loop, so that it begins at the same time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(play(seed))


def test_the_same_seed_gives_the_same_history() -> None:
    assert history(7) == history(7)


def test_another_seed_gives_other_names() -> None:
    assert history(7) != history(8)


async def test_a_settled_cluster_is_silent(harness: ControllerHarness) -> None:
    harness.create(build_service())
    harness.create(build_deployment(replicas=3))
    harness.create(build_deployment("stuck", NEVER_READY, progressDeadlineSeconds=60))
    harness.create(build_stateful_set())
    await harness.advance(120)
    settled = harness.revision

    await harness.advance(3600)

    assert harness.revision == settled


async def test_new_players_go_on_where_others_stopped() -> None:
    harness = ControllerHarness()
    harness.create(build_deployment(replicas=2))
    first = asyncio.create_task(harness.players.run())
    await harness.clock.sleep(0)
    await harness.clock.sleep(0)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    replica_sets, pods = len(harness.list_names(REPLICA_SET)), len(harness.list_names(POD))

    second = asyncio.create_task(ControllerManager(harness.api, harness.clock, SeededEntropy()).run())
    await harness.advance()
    second.cancel()
    with suppress(asyncio.CancelledError):
        await second

    assert (replica_sets, pods) == (1, 0)
    assert read_condition(harness.get(DEPLOYMENT, "web"), "Progressing") == ("True", "NewReplicaSetAvailable")
    assert len(harness.list_names(POD)) == 2


async def test_cancelled_players_leave_no_subscription_behind() -> None:
    harness = ControllerHarness()
    playing = asyncio.create_task(harness.players.run())
    await harness.advance()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing

    harness.create(build_deployment())
    harness.rules.never_ready("anything")
    await harness.advance()

    assert harness.list_names(REPLICA_SET) == []


async def test_load_balancers_get_an_address_when_asked_for() -> None:
    harness = ControllerHarness(integrations={"Service"})
    playing = asyncio.create_task(harness.players.run())
    harness.create(build_service("one", type="LoadBalancer"))
    harness.create(build_service("two", type="LoadBalancer"))
    harness.create(build_service("three"))
    await harness.advance()
    playing.cancel()
    with suppress(asyncio.CancelledError):
        await playing

    one, two, three = (harness.get(SERVICE, name)["status"]["loadBalancer"] for name in ("one", "two", "three"))
    assert one == {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}
    assert two == {"ingress": [{"ip": "192.0.2.2", "ipMode": "VIP"}]}
    assert three == {}


async def test_writes_are_recorded_under_the_names_of_the_real_controllers(harness: ControllerHarness) -> None:
    harness.create(build_deployment())
    await harness.advance()

    (pod,) = harness.list_objects(POD)
    (replica_set,) = harness.list_objects(REPLICA_SET)
    managers = {(each["manager"], each.get("subresource", "")) for each in pod["metadata"]["managedFields"]}
    assert managers == {("kube-controller-manager", ""), ("kubelet", "status")}
    assert {(each["manager"], each.get("subresource", "")) for each in replica_set["metadata"]["managedFields"]} == {
        ("kube-controller-manager", ""),
        ("kube-controller-manager", "status"),
    }
