"""Objects that exist before a component applies them: adopted and said so, or refused; on both clusters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.cli.diff_text import halting_lines
from konverge.component import (
    AppliedMemory,
    Component,
    ComponentBuilder,
    Option,
    ReconcileContext,
    adopt,
    orphan_when,
    read_only,
    unowned,
)
from konverge.component.options import resolve
from konverge.component.rehearsal import rehearse
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, controller_of
from konverge.primitives import ConfigMap, Deployment, Secret
from tests.component.app import CONFIG_MAP, DEPLOYMENT, App

pytestmark = pytest.mark.anyio

NewApp = Callable[[str], Awaitable[App]]


def component(resource: Any, *options: Option, is_suspended: bool = False) -> Component:
    builder = ComponentBuilder("frontend", condition_type="FrontendReady").with_resource(resource, *options)
    return builder.suspend(is_suspended).build()


async def made_by_hand(app: App, **data: str) -> Object:
    """A ConfigMap that somebody has applied."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **app.config(**(data or {"colour": "red", "size": "xl"}))}
    return (await app.cluster.client.apply(obj, field_manager="painter")).object


async def found(app: App) -> Object:
    live = await app.find(CONFIG_MAP, "settings")
    assert live is not None
    return live


def adoptions(app: App) -> list[str]:
    return [message for reason, message in app.events.warned if reason == "ResourceAdopted"]


async def reconcile_refusing(app: App, wanted: Component) -> Condition:
    """A pass of an operator that adopts nothing."""
    ctx = ReconcileContext(
        client=app.client,
        owner=await app.owner(),
        clock=app.cluster.clock,
        events=app.events,
        memory=app.memory,
        adopt=False,
    )
    async with ctx.flushing_status():
        await wanted.reconcile(ctx)
    return await app.condition("FrontendReady")


# Adopted


async def test_adoption_is_told_once_with_the_managers_and_fields_that_were_overruled(app: App) -> None:
    await made_by_hand(app)
    wanted = component(ConfigMap(app.config(colour="blue")))

    condition = await app.reconcile(wanted)
    await app.reconcile(wanted)
    app.memory = AppliedMemory()  # as after a restart
    await app.reconcile(wanted)

    assert condition.reason == "Healthy"
    assert adoptions(app) == [
        "ConfigMap 'settings' existed already and is adopted by component frontend; it was managed by painter. "
        "Overruled: painter (.data.colour)"
    ]
    assert (await found(app))["data"] == {"colour": "blue", "size": "xl"}


async def test_adoption_of_an_object_that_says_the_same_overrules_nothing_and_is_told_too(app: App) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **app.config(colour="blue")}
    await app.cluster.client.create(obj, field_manager="kubectl-create")
    await app.reconcile(component(ConfigMap(app.config(colour="blue"))))
    assert adoptions(app) == [
        "ConfigMap 'settings' existed already and is adopted by component frontend; it was managed by kubectl-create. "
        "Overruled: no fields"
    ]


@pytest.mark.parametrize("option", [None, unowned(), adopt()], ids=["owned", "unowned", "adopt"])
async def test_what_a_component_makes_is_not_adopted(app: App, option: Option | None) -> None:
    wanted = component(ConfigMap(app.config()), *([option] if option else []))
    await app.reconcile(wanted)
    await app.reconcile(wanted)
    child = await found(app)
    await app.cluster.client.update({**child, "data": {"colour": "red"}})
    await app.reconcile(wanted)
    assert adoptions(app) == []


async def test_the_component_of_another_name_adopts_nothing(app: App) -> None:
    await app.reconcile(component(ConfigMap(app.config()), unowned()))
    renamed = ComponentBuilder("pages", condition_type="FrontendReady")
    await app.reconcile(renamed.with_resource(ConfigMap(app.config(colour="red")), unowned()).build())
    assert adoptions(app) == []


async def test_a_released_object_is_adopted_by_the_next_owner(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.config(colour="blue"))))
    await one.reconcile(component(ConfigMap(one.config(colour="blue")), orphan_when(True)))
    await two.reconcile(component(ConfigMap(two.config(colour="red"))))
    (told,) = adoptions(two)
    assert "managed by TestApp/frontend/" in told
    assert "(.data.colour)" in told


async def test_the_values_of_a_secret_are_not_told(app: App) -> None:
    obj: Object = {"apiVersion": "v1", "kind": "Secret", **app.config("access")}
    obj |= {"data": {"token": "b3JpZ2luYWw="}}
    await app.cluster.client.apply(obj, field_manager="painter")
    await app.reconcile(component(Secret({**app.config("access"), "data": {"token": "cGxhbnRlZA=="}})))
    (told,) = adoptions(app)
    assert "painter (.data.token)" in told
    assert "b3JpZ2luYWw" not in told


class Blind:
    """A cache that has not heard of an object yet."""

    def __init__(self, app: App) -> None:
        self._client = app.client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        if gvk == CONFIG_MAP and not live:
            raise NotFoundError("not yet")
        return await self._client.get(gvk, key, live=live)


async def test_an_object_that_no_cache_has_shown_is_told_all_the_same(app: App) -> None:
    await made_by_hand(app)
    ctx = ReconcileContext(client=Blind(app), owner=await app.owner(), clock=app.cluster.clock, events=app.events)
    await component(ConfigMap(app.config())).reconcile(ctx)
    assert "It appeared during the reconcile" in adoptions(app)[0]


async def test_explain_and_diff_tell_of_an_adoption_before_it_happens(app: App) -> None:
    await made_by_hand(app)
    told = await rehearse(
        component(ConfigMap(app.config(colour="blue"))), app.client, await app.owner(), clock=app.cluster.clock
    )
    assert "it was managed by painter. Overruled: painter (.data.colour)" in told.resources[0].adoption
    assert any("adopts v1/ConfigMap" in line and "painter" in line for line in halting_lines(told))
    assert (await found(app))["data"]["colour"] == "red"
    assert adoptions(app) == []


# Refused


async def test_a_resource_refuses_adoption_and_says_who_has_the_object(app: App) -> None:
    before = await made_by_hand(app)
    wanted = component(ConfigMap(app.config()), adopt(False))

    condition = await app.reconcile(wanted)
    writes = len(app.writes())
    await app.reconcile(wanted)

    identity = f"v1/ConfigMap/{app.key.namespace}/settings"
    assert (condition.status, condition.reason) == ("False", "Blocked")
    assert condition.message == (
        f"{identity} exists already, managed by painter, and adoption is refused. "
        "Delete it, give one of the two another name, or allow its adoption"
    )
    assert await found(app) == before
    assert app.writes()[writes:] == []
    assert app.events.warned == []


async def test_it_goes_on_once_the_object_is_gone(app: App) -> None:
    await made_by_hand(app)
    wanted = component(ConfigMap(app.config()), adopt(False))
    await app.reconcile(wanted)
    await app.cluster.client.delete(CONFIG_MAP, ObjectKey(app.key.namespace, "settings"))
    await app.gone(CONFIG_MAP, "settings")

    condition = await app.reconcile(wanted)
    app.memory = AppliedMemory()
    again = await app.reconcile(wanted)

    assert (condition.reason, again.reason) == ("Healthy", "Healthy")
    assert (controller_of(await found(app)) or {})["name"] == "shop"


async def test_another_controller_blocks_who_refuses_adoption(new_app: NewApp) -> None:
    one, two = await new_app("one"), await new_app("two")
    await one.reconcile(component(ConfigMap(one.config())))
    condition = await two.reconcile(component(ConfigMap(two.config()), adopt(False)))
    assert (condition.reason, condition.message) == ("Blocked", "controlled by TestApp one")


async def test_an_operator_refuses_and_a_resource_allows(app: App) -> None:
    before = await made_by_hand(app)
    refused = await reconcile_refusing(app, component(ConfigMap(app.config())))
    untouched = await found(app)
    allowed = await reconcile_refusing(app, component(ConfigMap(app.config()), adopt()))

    assert (refused.reason, allowed.reason) == ("Blocked", "Healthy")
    assert "managed by painter" in refused.message
    assert untouched == before


async def test_no_cache_is_believed_that_there_is_nothing_to_adopt(app: App) -> None:
    before = await made_by_hand(app)
    ctx = ReconcileContext(client=Blind(app), owner=await app.owner(), clock=app.cluster.clock, adopt=False)
    condition = await component(ConfigMap(app.config())).reconcile(ctx)
    assert condition.reason == "Blocked"
    assert await found(app) == before


async def test_what_may_not_be_adopted_is_not_suspended_either(app: App) -> None:
    await app.cluster.client.create({"apiVersion": "apps/v1", "kind": "Deployment", **app.deployment(replicas=2)})
    wanted = component(Deployment(app.deployment(replicas=2)), adopt(False), is_suspended=True)

    condition = await app.reconcile(wanted)

    live = await app.find(DEPLOYMENT, "web")
    assert condition.reason == "Suspended"
    assert live is not None
    assert live["spec"]["replicas"] == 2


def test_options_of_adoption_that_contradict_each_other_are_mistakes() -> None:
    assert resolve([adopt(True), adopt(False)])[1] == ["adopt(True) and adopt(False) exclude each other"]
    assert resolve([adopt(False), read_only()])[1] == [
        "read_only() excludes adopt(): a read-only object is nobody's business but its owner's"
    ]
    assert resolve([adopt("no")])[1] == ["adopt(): expected a bool, found str"]  # type: ignore[arg-type]
