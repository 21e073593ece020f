"""Two components of one owner that claim the same object, name or condition; on both clusters."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.errors import TerminalError
from konverge.feature import BooleanGate
from konverge.options import Option, delete, delete_when, orphan_when, read_only
from konverge.primitives import ConfigMap
from tests.component.app import CONFIG_MAP, ComponentHarness

pytestmark = pytest.mark.anyio


def component(
    app: ComponentHarness, name: str, colour: str, *options: Option, type: str = "", **more: Any
) -> Component:
    builder = ComponentBuilder(name, condition_type=type or f"{name.capitalize()}Ready")
    builder.with_feature_gate(more.get("gate"))
    return builder.with_resource(
        ConfigMap(app.build_config_map(more.get("object", "settings"), colour=colour)), *options
    ).build()


async def colour(app: ComponentHarness) -> str:
    found = await app.find(CONFIG_MAP, "settings")
    assert found is not None
    colour: str = found["data"]["colour"]
    return colour


async def test_the_second_writer_of_an_object_names_the_first_and_writes_nothing(app: ComponentHarness) -> None:
    first, second = component(app, "frontend", "blue"), component(app, "backend", "red")
    await app.reconcile(first)
    for _ in range(3):
        with pytest.raises(TerminalError, match='settings belongs to component "frontend" already'):
            await app.reconcile(first, second)
    condition = await app.condition("BackendReady")
    assert (condition.status, condition.reason) == ("False", "Error")
    assert 'component "backend": v1/ConfigMap/' in condition.message
    assert 'belongs to component "frontend" already' in condition.message
    assert (await app.condition("FrontendReady")).reason == "Healthy"
    assert await colour(app) == "blue"
    assert [entry.path for entry in app.writes() if "/configmaps/" in entry.path] == [
        f"/api/v1/namespaces/{app.key.namespace}/configmaps/settings"
    ]


@pytest.mark.parametrize(
    ("option", "is_enabled"), [(delete(), True), (orphan_when(True), True), (delete_when(False), False)]
)
async def test_what_one_component_applies_no_other_removes(
    app: ComponentHarness, option: Option, is_enabled: bool
) -> None:
    first = component(app, "frontend", "blue")
    second = component(app, "backend", "red", option, gate=BooleanGate(is_enabled))
    for _ in range(2):
        with pytest.raises(TerminalError, match='settings belongs to component "frontend" already'):
            await app.reconcile(first, second)
    assert await colour(app) == "blue"
    assert [event[2] for event in app.events.noted] == ["Create"]
    with pytest.raises(TerminalError, match='settings belongs to component "backend" already'):
        await app.reconcile(second, first)


async def test_what_one_component_applies_others_may_read_and_what_none_does_all_may_remove(
    app: ComponentHarness,
) -> None:
    first = component(app, "frontend", "blue")
    assert (await app.reconcile(first, component(app, "reader", "red", read_only()))).reason == "Healthy"
    one, two = (
        component(app, "one", "red", delete(), object="old"),
        component(app, "two", "red", delete(), object="old"),
    )
    assert (await app.reconcile(first, one, two)).reason == "Healthy"


async def test_two_components_of_one_name_are_an_error_of_the_second(app: ComponentHarness) -> None:
    first = component(app, "frontend", "blue")
    second = component(app, "frontend", "red", type="OtherReady", object="other")
    with pytest.raises(TerminalError, match='another component of this owner has the name "frontend"'):
        await app.reconcile(first, second)
    assert (await app.condition("OtherReady")).reason == "Error"
    assert (await app.condition("FrontendReady")).reason == "Healthy"
    assert await app.find(CONFIG_MAP, "other") is None


async def test_two_components_of_one_condition_are_an_error(app: ComponentHarness) -> None:
    first = component(app, "frontend", "blue")
    second = component(app, "backend", "red", type="FrontendReady", object="other")
    with pytest.raises(TerminalError, match='component "frontend" has condition type FrontendReady too'):
        await app.reconcile(first, second)
    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_a_component_may_be_reconciled_twice_in_a_pass(app: ComponentHarness) -> None:
    first = component(app, "frontend", "blue")
    assert (await app.reconcile(first, component(app, "frontend", "blue"))).reason == "Healthy"
