"""Objects of a kind that the server does not serve need no delete or suspend; on both clusters."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder, ReconcileContext
from konverge.dry_run import dry_run_component
from konverge.errors import KindUnreachableError, ReconcileError
from konverge.feature import BooleanGate
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.options import Option, delete, gated_by, orphan_when, read_only
from konverge.primitives import Convergence, ConvergingStatus, Workload
from tests.component.app import ComponentHarness

pytestmark = pytest.mark.anyio

GROUP = "absent.konverge.test"


def absent(app: ComponentHarness, *, deletes_on_suspend: bool = False) -> Workload:
    metadata = {"name": "thing", "namespace": app.key.namespace}
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Absentee", "metadata": metadata}
    return Workload(
        obj,
        converging_status=lambda live, operation: Convergence(ConvergingStatus.HEALTHY),
        suspend=lambda mutator: None,
        delete_on_suspend=deletes_on_suspend,
    )


def component(resource: Any, *options: Option, is_on: bool = True, is_suspended: bool = False) -> Component:
    builder = ComponentBuilder("frontend", condition_type="FrontendReady").with_resource(resource, *options)
    return builder.with_feature_gate(BooleanGate(is_on)).suspend(is_suspended).build()


@pytest.mark.parametrize("option", [delete(), gated_by(BooleanGate(False)), orphan_when(True)])
async def test_removing_what_cannot_exist_is_done(app: ComponentHarness, option: Option) -> None:
    condition = await app.reconcile(component(absent(app), option))
    assert (condition.status, condition.reason) == ("True", "Healthy")


async def test_a_component_that_is_switched_off_is_disabled(app: ComponentHarness) -> None:
    condition = await app.reconcile(component(absent(app), is_on=False))
    assert (condition.status, condition.reason, condition.message) == ("True", "Disabled", "Component is disabled.")


@pytest.mark.parametrize("deletes_on_suspend", [False, True])
async def test_suspending_what_cannot_exist_is_done(app: ComponentHarness, deletes_on_suspend: bool) -> None:
    condition = await app.reconcile(component(absent(app, deletes_on_suspend=deletes_on_suspend), is_suspended=True))
    assert (condition.status, condition.reason) == ("True", "Suspended")


@pytest.mark.parametrize("options", [(), (read_only(),)], ids=["managed", "read-only"])
async def test_applying_and_reading_it_is_an_error(app: ComponentHarness, options: tuple[Option, ...]) -> None:
    with pytest.raises(ReconcileError, match="Absentee"):
        await app.reconcile(component(absent(app), *options))
    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_explain_says_that_it_is_absent(app: ComponentHarness) -> None:
    report = await dry_run_component(
        component(absent(app), delete()), app.client, await app.owner(), clock=app.cluster.clock
    )
    assert [(resource.outcome, resource.exists) for resource in report.resources] == [("removed", False)]
    assert report.error == ""


class Unreachable:
    """A cluster whose aggregated API does not answer."""

    def __init__(self, app: ComponentHarness) -> None:
        self._client = app.client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        if gvk.group == GROUP:
            raise KindUnreachableError("the server of its group does not answer")
        return await self._client.get(gvk, key, live=live)


@pytest.mark.parametrize("way", ["deleted", "released", "suspended", "switched off"])
async def test_what_cannot_be_told_now_stays_an_error(app: ComponentHarness, way: str) -> None:
    wanted = {
        "deleted": lambda: component(absent(app), delete()),
        "released": lambda: component(absent(app), orphan_when(True)),
        "suspended": lambda: component(absent(app), is_suspended=True),
        "switched off": lambda: component(absent(app), is_on=False),
    }[way]()
    ctx = ReconcileContext(client=Unreachable(app), owner=await app.owner(), clock=app.cluster.clock)
    with pytest.raises(ReconcileError, match="does not answer"):
        await wanted.reconcile(ctx)
