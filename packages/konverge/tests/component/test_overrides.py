"""A foreign webhook overrides fields that a component applies, on both clusters."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from konverge.component import Component, ComponentBuilder, ReconcileContext
from konverge.dry_run import dry_run_component
from konverge.kube import Object
from konverge.primitives import ConfigMap, Secret
from tests.cluster.conformance.webhook_registrations import (
    CONFIG_MAPS,
    MUTATING,
    WebhookRegistrations,
    webhook_registrations,
)
from tests.cluster.conformance.webhook_servers import ALLOWED, Handler, json_patch
from tests.component.app import CONFIG_MAP, SECRET, ComponentHarness, LaterClock

pytestmark = pytest.mark.anyio

SECRETS = {**CONFIG_MAPS, "resources": ["secrets"]}
Pass = Callable[..., Awaitable[ReconcileContext]]


@pytest.fixture
async def hooks(app: ComponentHarness, tmp_path: Path) -> AsyncIterator[WebhookRegistrations]:
    async with webhook_registrations(app.cluster, tmp_path) as found:
        yield found


class Passes:
    """Passes over an owner at any time."""

    def __init__(self, app: ComponentHarness) -> None:
        self.app = app
        self.clock = LaterClock(app.cluster.clock)

    async def run(self, component: Component, *, after_seconds: float = 0) -> ReconcileContext:
        app = self.app
        self.clock.ahead += timedelta(seconds=after_seconds)
        owner = await app.owner()
        ctx = ReconcileContext(
            client=app.client, owner=owner, clock=self.clock, events=app.events, applied_cache=app.memory
        )
        async with ctx.flushing_status():
            assert (await component.reconcile(ctx)).reason == "Healthy"
        return ctx

    def applies(self) -> int:
        return len([entry for entry in self.app.writes() if "/testapps/" not in entry.path])

    def overrides(self) -> list[str]:
        return [message for reason, message, _ in self.app.events.noted if reason == "ResourceOverridden"]


@pytest.fixture
def passes(app: ComponentHarness) -> Passes:
    return Passes(app)


def component(app: ComponentHarness, colour: str = "blue") -> Component:
    config = ConfigMap(app.build_config_map(colour=colour, shape="round"))
    return ComponentBuilder("frontend", condition_type="FrontendReady").with_resource(config).build()


def painting(colour: str, path: str = "/data/colour") -> Handler:
    """Whatever is stored gets that colour, but what has none."""

    def paint(request: Object) -> Object:
        obj = request["object"] or {}
        if "colour" not in (obj.get("data") or {}):
            return ALLOWED
        return json_patch({"op": "replace", "path": path, "value": colour})

    return paint


async def data(app: ComponentHarness) -> Object:
    found = await app.find(CONFIG_MAP, "settings")
    assert found is not None
    held: Object = found["data"]
    return held


async def test_an_overridden_field_is_said_once_and_applied_again_at_intervals_that_grow(
    app: ComponentHarness, hooks: WebhookRegistrations, passes: Passes
) -> None:
    await hooks.add(MUTATING, "painter", painting("red"))
    ctx = await passes.run(component(app))

    assert await data(app) == {"colour": "red", "shape": "round"}
    (told,) = passes.overrides()
    assert "ConfigMap 'settings' is stored with other values than component frontend applies, in .data.colour:" in told
    assert timedelta(seconds=28) < (ctx.requeue_after or timedelta(0)) <= timedelta(seconds=30)
    for after_seconds, applies in ((0, 1), (28, 1), (3, 2), (31, 2), (30, 3), (60, 3), (62, 4)):
        ctx = await passes.run(component(app), after_seconds=after_seconds)
        assert passes.applies() == applies
        assert ctx.requeue_after is not None
    assert len(passes.overrides()) == 1


async def test_it_heals_after_the_webhook_has_gone(
    app: ComponentHarness, hooks: WebhookRegistrations, passes: Passes
) -> None:
    await hooks.add(MUTATING, "painter", painting("red"))
    await passes.run(component(app))
    painted: list[str] = []

    async def is_gone() -> bool:
        name = f"probe-{len(painted)}"
        painted.append(name)
        body = {"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map(name, colour="green")}
        made = await app.cluster.client.create(body, dry_run=True)
        return bool(made["data"]["colour"] == "green")

    await hooks.remove_all()
    await app.cluster.eventually(is_gone, describe="the webhook is asked no more")
    assert (await data(app))["colour"] == "red"
    ctx = await passes.run(component(app), after_seconds=31)

    assert (await data(app))["colour"] == "blue"
    assert ctx.requeue_after is None
    settled = passes.applies()
    await passes.run(component(app), after_seconds=3600)
    assert passes.applies() == settled


async def test_another_wish_is_applied_at_once(
    app: ComponentHarness, hooks: WebhookRegistrations, passes: Passes
) -> None:
    await hooks.add(MUTATING, "painter", painting("red"))
    await passes.run(component(app))
    await passes.run(component(app, "green"))
    assert passes.applies() == 2


async def test_what_a_webhook_writes_in_another_form_costs_nothing(
    app: ComponentHarness, hooks: WebhookRegistrations, passes: Passes
) -> None:
    await hooks.add(MUTATING, "painter", painting("BLUE"))
    ctx = await passes.run(component(app))
    await passes.run(component(app), after_seconds=3600)

    assert (await data(app))["colour"] == "BLUE"
    assert (passes.applies(), passes.overrides(), ctx.requeue_after) == (1, [], None)


async def test_an_overridden_secret_is_said_without_its_values(
    app: ComponentHarness, hooks: WebhookRegistrations, passes: Passes
) -> None:
    other = base64.b64encode(b"other-value").decode()
    await hooks.add(MUTATING, "painter", painting(other), rules=[SECRETS])
    secret = Secret(
        {"metadata": app.build_config_map("credentials")["metadata"], "stringData": {"colour": "first-value"}}
    )
    built = ComponentBuilder("frontend", condition_type="FrontendReady").with_resource(secret).build()
    await passes.run(built)

    found = await app.find(SECRET, "credentials")
    assert found is not None
    assert found["data"] == {"colour": other}
    (told,) = passes.overrides()
    assert ".data.colour" in told
    planted = ["first-value", "other-value", other, base64.b64encode(b"first-value").decode()]
    report = await dry_run_component(built, app.client, await app.owner(), clock=app.cluster.clock)
    for text in (json.dumps(app.events.noted), str(report)):
        assert not [value for value in planted if value in text]


async def test_explain_names_the_overridden_field(
    app: ComponentHarness, hooks: WebhookRegistrations, passes: Passes
) -> None:
    await hooks.add(MUTATING, "painter", painting("red"))
    await passes.run(component(app))
    report = await dry_run_component(component(app), app.client, await app.owner(), clock=app.cluster.clock)

    (story,) = report.resources
    assert story.changes == ()
    assert "in .data.colour: a mutating webhook or policy of the cluster overrides them" in story.override
