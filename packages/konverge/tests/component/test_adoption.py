"""Objects that exist before a component applies them are adopted with a report, or refused; on both clusters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge._internal.cli.diff_text import format_halts
from konverge._internal.component.resource_options import resolve_options
from konverge.component import AppliedCache, Component, ComponentBuilder, ReconcileContext
from konverge.dry_run import dry_run_component
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_controller
from konverge.options import Option, adopt, orphan_when, read_only, unowned
from konverge.primitives import ConfigMap, Deployment, Secret
from tests.component.app import CONFIG_MAP, DEPLOYMENT, ComponentHarness

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[ComponentHarness]]


def component(resource: Any, *options: Option, is_suspended: bool = False) -> Component:
    builder = ComponentBuilder("frontend", condition_type="FrontendReady").with_resource(resource, *options)
    return builder.suspend(is_suspended).build()


async def create_by_hand(app: ComponentHarness, **data: str) -> Object:
    """A ConfigMap that somebody has applied."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(**(data or {"colour": "red", "size": "xl"}))}
    return (await app.cluster.client.apply(obj, field_manager="painter")).object


async def get_settings(app: ComponentHarness) -> Object:
    live = await app.find(CONFIG_MAP, "settings")
    assert live is not None
    return live


def adoptions(app: ComponentHarness) -> list[str]:
    return [message for reason, message in app.events.warned if reason == "ResourceAdopted"]


async def reconcile_refusing(app: ComponentHarness, wanted: Component) -> Condition:
    """A pass of an operator that adopts nothing."""
    ctx = ReconcileContext(
        client=app.client,
        owner=await app.owner(),
        clock=app.cluster.clock,
        events=app.events,
        applied_cache=app.memory,
        adopt=False,
    )
    async with ctx.flushing_status():
        await wanted.reconcile(ctx)
    return await app.condition("FrontendReady")


# Adopted


async def test_adoption_is_told_once_with_the_managers_and_fields_that_were_overruled(app: ComponentHarness) -> None:
    await create_by_hand(app)
    wanted = component(ConfigMap(app.build_config_map(colour="blue")))

    condition = await app.reconcile(wanted)
    await app.reconcile(wanted)
    app.memory = AppliedCache()  # as after a restart
    await app.reconcile(wanted)

    assert condition.reason == "Healthy"
    assert adoptions(app) == [
        "ConfigMap 'settings' existed already and is adopted by component frontend; it was managed by painter. "
        "Overruled: painter (.data.colour)"
    ]
    assert (await get_settings(app))["data"] == {"colour": "blue", "size": "xl"}


async def test_adoption_of_an_object_that_says_the_same_overrules_nothing_and_is_told_too(
    app: ComponentHarness,
) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(colour="blue")}
    await app.cluster.client.create(obj, field_manager="kubectl-create")
    await app.reconcile(component(ConfigMap(app.build_config_map(colour="blue"))))
    assert adoptions(app) == [
        "ConfigMap 'settings' existed already and is adopted by component frontend; it was managed by kubectl-create. "
        "Overruled: no fields"
    ]


@pytest.mark.parametrize("option", [None, unowned(), adopt()], ids=["owned", "unowned", "adopt"])
async def test_what_a_component_makes_is_not_adopted(app: ComponentHarness, option: Option | None) -> None:
    wanted = component(ConfigMap(app.build_config_map()), *([option] if option else []))
    await app.reconcile(wanted)
    await app.reconcile(wanted)
    child = await get_settings(app)
    await app.cluster.client.update({**child, "data": {"colour": "red"}})
    await app.reconcile(wanted)
    assert adoptions(app) == []


async def test_the_component_of_another_name_adopts_nothing(app: ComponentHarness) -> None:
    await app.reconcile(component(ConfigMap(app.build_config_map()), unowned()))
    renamed = ComponentBuilder("pages", condition_type="FrontendReady")
    await app.reconcile(renamed.with_resource(ConfigMap(app.build_config_map(colour="red")), unowned()).build())
    assert adoptions(app) == []


async def test_a_released_object_is_adopted_by_the_next_owner(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.build_config_map(colour="blue"))))
    await one.reconcile(component(ConfigMap(one.build_config_map(colour="blue")), orphan_when(True)))
    await two.reconcile(component(ConfigMap(two.build_config_map(colour="red"))))
    (report,) = adoptions(two)
    assert "managed by TestApp/frontend/" in report
    assert "(.data.colour)" in report


async def test_the_values_of_a_secret_are_not_told(app: ComponentHarness) -> None:
    obj: Object = {"apiVersion": "v1", "kind": "Secret", **app.build_config_map("access")}
    obj |= {"data": {"token": "b3JpZ2luYWw="}}
    await app.cluster.client.apply(obj, field_manager="painter")
    await app.reconcile(component(Secret({**app.build_config_map("access"), "data": {"token": "cGxhbnRlZA=="}})))
    (report,) = adoptions(app)
    assert "painter (.data.token)" in report
    assert "b3JpZ2luYWw" not in report


class Blind:
    """A cache that has not heard of an object yet."""

    def __init__(self, app: ComponentHarness) -> None:
        self._client = app.client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        if gvk == CONFIG_MAP and not live:
            raise NotFoundError("not yet")
        return await self._client.get(gvk, key, live=live)


async def test_an_object_that_no_cache_has_shown_is_told_all_the_same(app: ComponentHarness) -> None:
    await create_by_hand(app)
    ctx = ReconcileContext(client=Blind(app), owner=await app.owner(), clock=app.cluster.clock, events=app.events)
    await component(ConfigMap(app.build_config_map())).reconcile(ctx)
    assert "It appeared during the reconcile" in adoptions(app)[0]


async def test_explain_and_diff_tell_of_an_adoption_before_it_happens(app: ComponentHarness) -> None:
    await create_by_hand(app)
    report = await dry_run_component(
        component(ConfigMap(app.build_config_map(colour="blue"))),
        app.client,
        await app.owner(),
        clock=app.cluster.clock,
    )
    assert "it was managed by painter. Overruled: painter (.data.colour)" in report.resources[0].adoption
    assert any("adopts v1/ConfigMap" in line and "painter" in line for line in format_halts(report))
    assert (await get_settings(app))["data"]["colour"] == "red"
    assert adoptions(app) == []


# Refused


async def test_a_resource_refuses_adoption_and_says_who_has_the_object(app: ComponentHarness) -> None:
    before = await create_by_hand(app)
    wanted = component(ConfigMap(app.build_config_map()), adopt(False))

    condition = await app.reconcile(wanted)
    writes = len(app.writes())
    await app.reconcile(wanted)

    identity = f"v1/ConfigMap/{app.key.namespace}/settings"
    assert (condition.status, condition.reason) == ("False", "Blocked")
    assert condition.message == (
        f"{identity} exists already, managed by painter, and adoption is refused. "
        "Delete it, give one of the two another name, or allow its adoption"
    )
    assert await get_settings(app) == before
    assert app.writes()[writes:] == []
    assert app.events.warned == []


async def test_it_goes_on_once_the_object_is_gone(app: ComponentHarness) -> None:
    await create_by_hand(app)
    wanted = component(ConfigMap(app.build_config_map()), adopt(False))
    await app.reconcile(wanted)
    await app.cluster.client.delete(CONFIG_MAP, ObjectKey(app.key.namespace, "settings"))
    await app.wait_until_gone(CONFIG_MAP, "settings")

    condition = await app.reconcile(wanted)
    app.memory = AppliedCache()
    again = await app.reconcile(wanted)

    assert (condition.reason, again.reason) == ("Healthy", "Healthy")
    assert (find_controller(await get_settings(app)) or {})["name"] == "shop"


async def test_another_controller_blocks_who_refuses_adoption(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.build_config_map())))
    condition = await two.reconcile(component(ConfigMap(two.build_config_map()), adopt(False)))
    assert (condition.reason, condition.message) == ("Blocked", "controlled by TestApp one")


async def test_an_operator_refuses_and_a_resource_allows(app: ComponentHarness) -> None:
    before = await create_by_hand(app)
    refused = await reconcile_refusing(app, component(ConfigMap(app.build_config_map())))
    untouched = await get_settings(app)
    allowed = await reconcile_refusing(app, component(ConfigMap(app.build_config_map()), adopt()))

    assert (refused.reason, allowed.reason) == ("Blocked", "Healthy")
    assert "managed by painter" in refused.message
    assert untouched == before


async def test_no_cache_is_believed_that_there_is_nothing_to_adopt(app: ComponentHarness) -> None:
    before = await create_by_hand(app)
    ctx = ReconcileContext(client=Blind(app), owner=await app.owner(), clock=app.cluster.clock, adopt=False)
    condition = await component(ConfigMap(app.build_config_map())).reconcile(ctx)
    assert condition.reason == "Blocked"
    assert await get_settings(app) == before


async def test_what_may_not_be_adopted_is_not_suspended_either(app: ComponentHarness) -> None:
    await app.cluster.client.create({"apiVersion": "apps/v1", "kind": "Deployment", **app.build_deployment(replicas=2)})
    wanted = component(Deployment(app.build_deployment(replicas=2)), adopt(False), is_suspended=True)

    condition = await app.reconcile(wanted)

    live = await app.find(DEPLOYMENT, "web")
    assert condition.reason == "Suspended"
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_options_of_adoption_that_contradict_each_other_are_mistakes() -> None:
    assert resolve_options([adopt(True), adopt(False)])[1] == ["adopt(True) and adopt(False) exclude each other"]
    assert resolve_options([adopt(False), read_only()])[1] == [
        "read_only() excludes adopt(): the component does not write a read-only object"
    ]
    assert resolve_options([adopt("no")])[1] == ["adopt(): expected a bool, found str"]  # type: ignore[arg-type]
