"""Failures of the demo's steps, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from konverge.clock import SimulatedLoop
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster._internal.cli.demo_output import PlainOutput
from konverge_cluster._internal.cli.demo_runner import DemoError, DemoRunner
from konverge_cluster._internal.cli.demo_script import ApplyAction, DemoState, DemoStep, IdleAction, Waypoint
from konverge_cluster.testing import Cluster

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)]),
]

SERVICE = GroupVersionKind("", "v1", "Service")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
OPERATOR = "operator"


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    """Use only simulated time, since no other process takes part."""
    return "asyncio", {"loop_factory": SimulatedLoop}


def service(cluster: Cluster) -> Object:
    metadata = {"name": "shop", "namespace": cluster.namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}}


def is_gone(now: DemoState, _before: DemoState) -> str:
    return "it is still there" if now.get("Service", "shop") else ""


@asynccontextmanager
async def demo_runner(cluster: Cluster) -> AsyncIterator[DemoRunner]:
    """Run steps while Services are watched; the operator is the client with that user agent."""
    found = DemoRunner(
        cluster.client, PlainOutput(), cluster.clock, service(cluster), lambda: cluster.list_requests(OPERATOR)
    )
    following = asyncio.create_task(found.watch_kind(SERVICE))
    yield found
    following.cancel()
    await asyncio.wait([following])


async def test_a_step_that_does_not_happen_says_what_was_seen_at_its_deadline(cluster: Cluster) -> None:
    step = DemoStep("The Service goes", ApplyAction(service(cluster)), (Waypoint("Service shop is gone", is_gone),))
    began = cluster.clock.monotonic()

    async with demo_runner(cluster) as played:
        with pytest.raises(DemoError) as failure:
            await played.run_step(3, step)

    assert str(failure.value) == (
        "step 3 (The Service goes): expected: Service shop is gone; found: it is still there after 15 s"
    )
    assert cluster.clock.monotonic() - began == pytest.approx(15)


async def test_an_operator_that_sends_while_nothing_happens_is_told_of(cluster: Cluster) -> None:
    operator = cluster.new_client(OPERATOR)

    async def fidget() -> None:
        for name in ("web", "other"):
            await cluster.clock.sleep(4)
            with pytest.raises(NotFoundError):
                await operator.get(CONFIG_MAP, ObjectKey(cluster.namespace, name))

    await operator.mapping(CONFIG_MAP)
    await cluster.clock.sleep(1)
    async with demo_runner(cluster) as played, asyncio.TaskGroup() as tasks:
        tasks.create_task(fidget())
        with pytest.raises(DemoError) as failure:
            await played.run_step(1, DemoStep("Nothing changes", IdleAction(10)))

    assert str(failure.value) == (
        "the operator sent 2 requests in 10 s without changes, the first was get /api/v1/namespaces/test/configmaps/web"
    )


async def test_a_quiet_operator_is_told_of_by_its_watches(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    operator = cluster.new_client(OPERATOR)

    async def watch_again() -> None:
        await cluster.clock.sleep(4)
        async with operator.watch(CONFIG_MAP):
            await cluster.clock.sleep(1)

    async with operator.watch(SERVICE), operator.watch(CONFIG_MAP):
        await cluster.clock.sleep(1)
        async with demo_runner(cluster) as played, asyncio.TaskGroup() as tasks:
            tasks.create_task(watch_again())
            await played.run_step(1, DemoStep("Nothing changes", IdleAction(10)))

    assert "done in 10.0 s: the operator has 2 watches open and sent 0 requests in 10 s" in capsys.readouterr().out
