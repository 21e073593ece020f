"""Fields that a component takes back from another writer: one event names the writer; on both clusters."""

from __future__ import annotations

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.kube import Object, ObjectKey
from konverge.primitives import ConfigMap, Secret
from tests.component.app import AGENT, CONFIG_MAP, SECRET, ComponentHarness

pytestmark = pytest.mark.anyio


def settings(app: ComponentHarness, **data: str) -> Component:
    return (
        ComponentBuilder("settings", condition_type="SettingsReady")
        .with_resource(ConfigMap(app.build_config_map(**data)))
        .build()
    )


async def paint(app: ComponentHarness, **data: str) -> None:
    """Another writer sets entries, as ``kubectl edit`` does."""
    await app.cluster.client.patch(
        CONFIG_MAP,
        ObjectKey(app.key.namespace, "settings"),
        {"data": data},
        patch_type="merge",
        field_manager="painter",
    )


def list_takeovers(app: ComponentHarness) -> list[str]:
    return [message for reason, message, _ in app.events.noted if reason == "FieldsTakenOver"]


def count_reads(app: ComponentHarness) -> int:
    return sum(request.verb == "get" and "/configmaps/" in request.path for request in app.cluster.list_requests(AGENT))


async def test_each_writer_whose_field_is_taken_back_is_named_with_the_field(app: ComponentHarness) -> None:
    await app.reconcile(settings(app))
    await paint(app, colour="red", size="9")
    await app.reconcile(settings(app))
    await paint(app, colour="green")
    await app.reconcile(settings(app))

    assert list_takeovers(app) == ["ConfigMap 'settings': fields taken over from painter (.data.colour)"] * 2
    assert app.events.warned == []


async def test_a_change_of_the_author_costs_no_read_and_no_event(app: ComponentHarness) -> None:
    await app.reconcile(settings(app))
    before = count_reads(app)

    await app.reconcile(settings(app, colour="red", size="9"))

    assert list_takeovers(app) == []
    assert count_reads(app) == before + 1


async def test_a_field_that_the_author_newly_claims_names_its_present_writer(app: ComponentHarness) -> None:
    await app.reconcile(settings(app))
    await paint(app, size="9")

    await app.reconcile(settings(app, colour="blue", size="3"))

    assert list_takeovers(app) == ["ConfigMap 'settings': fields taken over from painter (.data.size)"]


async def test_a_renamed_component_is_no_rival_of_itself(app: ComponentHarness) -> None:
    await app.reconcile(settings(app))
    renamed = ComponentBuilder("options", condition_type="SettingsReady").with_resource(
        ConfigMap(app.build_config_map(colour="red"))
    )

    await app.reconcile(renamed.build())

    assert list_takeovers(app) == []


async def test_the_event_about_a_secret_has_no_value(app: ComponentHarness) -> None:
    obj: Object = {"metadata": {"name": "access", "namespace": app.key.namespace}, "stringData": {"token": "one-horse"}}
    component = ComponentBuilder("access", condition_type="AccessReady").with_resource(Secret(obj)).build()
    await app.reconcile(component)
    await app.cluster.client.patch(
        SECRET,
        ObjectKey(app.key.namespace, "access"),
        {"stringData": {"token": "two-horse"}},
        patch_type="merge",
        field_manager="painter",
    )

    await app.reconcile(component)

    (message,) = list_takeovers(app)
    assert message == "Secret 'access': fields taken over from painter (.data.token)"
