"""Events of an owner whose reconciles fail, on either cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from konverge._internal.operator.owner_events import OwnerEventReporter
from konverge.component import Component, ComponentBuilder
from konverge.errors import ConflictError, ConnectionFailedError, KonvergeError, ReconcileError
from konverge.kube import GroupVersionKind, Object
from konverge.operator import Operator, OwnerContext
from konverge.primitives import ConfigMap, Deployment
from tests.operator.sample_operator import OperatorHarness, Shop, broken, settings

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")


async def events_of(town: OperatorHarness, name: str, *reasons: str) -> list[Object]:
    """The events about a shop that have one of the reasons."""
    found = await town.client.list(EVENT, namespace=town.namespace)
    return [each for each in found.items if each["regarding"]["name"] == name and each["reason"] in reasons]


def oven(shop: Shop) -> Component:
    """Never becomes ready while the greeting is cold."""
    name = {"name": f"{shop.metadata.name}-oven", "namespace": shop.metadata.namespace}
    labels = {"oven": shop.metadata.name}
    image = "konverge.test/never-ready:1" if shop.spec.greeting == "cold" else "konverge.test/app:1"
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "oven", "image": image}]}}
    deployment: Object = {"metadata": name, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    deployment["spec"]["strategy"] = {"type": "Recreate"}
    return (
        ComponentBuilder("oven", condition_type="OvenReady")
        .with_resource(Deployment(deployment))
        .with_grace_period(timedelta(seconds=2))
        .build()
    )


@pytest.mark.slow
async def test_failing_reconciles_are_one_series_and_the_recovery_is_told_once(town: OperatorHarness) -> None:
    operator = Operator("shops")
    failures: list[int] = []
    enough = 300 if town.cluster.name == "embedded" else 40

    @operator.reconciles(Shop)
    async def moody(shop: Shop, ctx: OwnerContext) -> None:
        if shop.spec.greeting == "rude":
            failures.append(shop.spec.replicas)
            raise ValueError("no shop greets like that")

    def has_failed_for(number: int) -> bool:
        return failures[-1:] == [number]

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="rude", replicas=0)
        for number in range(1, enough):
            await town.change("corner", replicas=number)
            await town.cluster.eventually(partial(has_failed_for, number), describe="the next failure")

        async def is_counted() -> bool:
            return ["series" in each for each in await events_of(town, "corner", "ReconcileFailed")] == [True]

        await town.cluster.eventually(is_counted, describe="one event with a series")
        await town.change("corner", greeting="Hello")
        (over,) = await town.cluster.eventually(
            lambda: events_of(town, "corner", "Recovered"), describe="the recovery is told"
        )
        await town.change("corner", replicas=enough)
        await town.wait_until_quiet()
        (failed,) = await events_of(town, "corner", "ReconcileFailed")
        assert len(await events_of(town, "corner", "Recovered")) == 1

    assert len(failures) >= enough
    assert (failed["type"], failed["action"]) == ("Warning", "Reconcile")
    assert failed["note"] == "ValueError: no shop greets like that"
    assert failed["series"]["count"] >= 2
    assert (over["type"], over["note"]) == ("Normal", "The reconcile succeeds again.")
    assert len([each for each in town.writes() if "events" in each.path]) <= 10


async def test_a_component_that_fails_to_build_is_told(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, broken)
    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="rude")
        (event,) = await town.cluster.eventually(
            lambda: events_of(town, "corner", "ReconcileFailed"), describe="the failure is told"
        )

    assert (event["type"], event["note"]) == ("Warning", "ValueError: no shop greets like that")


async def test_down_and_the_recovery_from_it_are_told_once_each(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, oven)
    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="cold")
        await town.wait_for_condition("corner", "Down", "OvenReady")
        await town.cluster.eventually(lambda: events_of(town, "corner", "Down"), describe="Down is told")
        await town.wait_until_quiet()
        (down,) = await events_of(town, "corner", "Down", "Degraded")
        await town.change("corner", greeting="warm")
        await town.wait_until_ready("corner")

        async def is_over() -> bool:
            return bool(await events_of(town, "corner", "Recovered", "Recovering"))

        await town.cluster.eventually(is_over, describe="the recovery is told")
        await town.wait_until_quiet()
        (over,) = await events_of(town, "corner", "Recovered", "Recovering")

    assert (down["type"], down["note"][:27]) == ("Warning", "OvenReady is Down: Componen")
    assert "series" not in down
    assert (over["type"], over["note"][:26]) == ("Normal", "OvenReady was Down and is ")


async def test_an_error_that_a_function_keeps_to_itself_is_told(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def forgiving(shop: Shop, ctx: OwnerContext) -> None:
        named = {"metadata": {"name": "No Name", "namespace": shop.metadata.namespace}}
        component = ComponentBuilder("odd", condition_type="OddReady").with_resource(ConfigMap(named)).build()
        async with ctx.flushing_status():
            try:
                await component.reconcile(ctx)
            except ReconcileError:
                return

    async with town.running_operator(operator):
        await town.create_shop("corner")
        (event,) = await town.cluster.eventually(lambda: events_of(town, "corner", "Error"), describe="it is told")

    assert event["type"] == "Warning"
    assert event["note"].startswith("OddReady is Error: failed to apply resource v1/ConfigMap/")


@dataclass
class Recorder:
    """Notes what is recorded as (type, reason, message)."""

    noted: list[tuple[str, str, str]] = field(default_factory=list)

    def event(self, owner: Object, *, reason: str, message: str, action: str) -> None:
        self.noted.append(("Normal", reason, message))

    def warning(self, owner: Object, *, reason: str, message: str, action: str) -> None:
        self.noted.append(("Warning", reason, message))


AWAY, BEHIND = ConnectionFailedError("no route"), ConflictError("an older version")


@pytest.mark.parametrize(
    ("error", "times", "is_told"),
    [
        (KonvergeError("broken"), 1, True),
        (AWAY, 9, False),
        (ExceptionGroup("", [AWAY, AWAY]), 9, False),
        (ExceptionGroup("", [AWAY, KonvergeError("broken")]), 1, True),
        (BEHIND, 2, False),
        (BEHIND, 3, True),
    ],
)
def test_a_server_that_is_away_and_a_conflict_that_passes_are_no_events(
    error: Exception, times: int, is_told: bool
) -> None:
    recorder: Any = Recorder()

    assert (
        OwnerEventReporter(recorder).report_failure({"kind": "Shop", "metadata": {"name": "corner"}}, error, times)
        is is_told
    )
    assert len(recorder.noted) == is_told
