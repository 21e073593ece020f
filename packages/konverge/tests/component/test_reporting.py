"""Reports of a reconcile besides the condition: events, apply metrics and log fields."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from konverge._internal.primitives.resource_protocol import Convergence, Suspension
from konverge.component import ComponentBuilder, ReconcileContext
from konverge.errors import ReconcileError
from konverge.guards import blocked
from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Mutation
from konverge.options import Option, delete, orphan_when, read_only, suppress_grace_inconsistency_warning
from konverge.primitives import ConfigMap, Deployment, Grace, GraceStatus, Service, Static
from tests.component.app import CONFIG_MAP, ComponentHarness

pytestmark = pytest.mark.anyio


@dataclass
class Applies:
    """Notes every count as (component, resource, kind, operation or "failed")."""

    counted: list[tuple[str, str, str, str]] = field(default_factory=list)
    owner_kinds: set[str] = field(default_factory=set)

    def record_apply(self, *, owner_kind: str, component: str, resource: str, kind: str, operation: str) -> None:
        self.owner_kinds.add(owner_kind)
        self.counted.append((component, resource, kind, operation))

    def record_failure(self, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        self.record_apply(owner_kind=owner_kind, component=component, resource=resource, kind=kind, operation="failed")


@dataclass
class Listener:
    """Notes what it hears of each resource; it runs no passes."""

    heard: list[tuple[str, str]] = field(default_factory=list)

    def on_processed(self, identity: str, live: Object | None, halt: Convergence | None) -> None:
        self.heard.append((identity, "is there" if halt is None else halt.reason))

    def on_suspended(self, identity: str, suspension: Suspension) -> None:
        self.heard.append((identity, suspension.status))

    def on_adopted(self, identity: str, message: str) -> None:
        self.heard.append((identity, "is adopted"))

    def on_left_alone(self, identity: str, message: str) -> None:
        self.heard.append((identity, "is left alone"))

    def on_overridden(self, identity: str, message: str) -> None:
        self.heard.append((identity, message))


def frontend() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


async def context(app: ComponentHarness, applies: Applies) -> ReconcileContext:
    owner, clock = await app.owner(), app.cluster.clock
    return ReconcileContext(
        client=app.client, owner=owner, clock=clock, applied_cache=app.memory, apply_metrics=applies
    )


class Broken:
    """A recorder that records nothing."""

    def event(self, owner: Object, **_: object) -> None:
        raise OSError("the disk is full")

    def warning(self, owner: Object, **_: object) -> None:
        raise OSError("the disk is full")

    def record_apply(self, **_: object) -> None:
        raise OSError("the disk is full")

    def record_failure(self, **_: object) -> None:
        raise OSError("the disk is full")


@pytest.mark.parametrize("option", [None, delete(), orphan_when(True)])
async def test_a_recorder_of_events_that_raises_is_an_error_of_the_component(
    app: ComponentHarness, option: Option | None
) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map()), option).build()
    if option is not None:
        await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    owner, clock = await app.owner(), app.cluster.clock
    ctx = ReconcileContext(client=app.client, owner=owner, clock=clock, events=Broken())
    with pytest.raises(ReconcileError, match="failed to record an event about resource v1/ConfigMap/"):
        await component.reconcile(ctx)

    condition = ctx.condition("FrontendReady")
    assert condition is not None
    assert (condition.reason, "the disk is full" in condition.message) == ("Error", True)


@pytest.mark.parametrize("name", ["settings", "Not A Name"])
async def test_a_count_of_applies_that_raises_is_an_error_of_the_component(app: ComponentHarness, name: str) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map(name))).build()
    owner, clock = await app.owner(), app.cluster.clock
    ctx = ReconcileContext(client=app.client, owner=owner, clock=clock, apply_metrics=Broken())
    with pytest.raises(ReconcileError, match="failed to count the apply of resource v1/ConfigMap/"):
        await component.reconcile(ctx)

    condition = ctx.condition("FrontendReady")
    assert condition is not None
    assert condition.reason == "Error"


async def test_each_apply_of_a_managed_resource_is_counted_once_by_what_it_did(app: ComponentHarness) -> None:
    await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("users")})
    applies = Applies()

    def component(colour: str) -> ComponentBuilder:
        return (
            frontend()
            .with_resource(ConfigMap(app.build_config_map("users")), read_only())
            .with_resource(ConfigMap(app.build_config_map(colour=colour), metrics_identifier="palette"))
            .with_resource(ConfigMap(app.build_config_map("old")), delete())
            .with_resource(ConfigMap(app.build_config_map("free")), orphan_when(True))
        )

    for colour in ("blue", "blue", "red"):
        await component(colour).build().reconcile(await context(app, applies))
    await component("red").suspend(True).build().reconcile(await context(app, applies))

    assert applies.owner_kinds == {"TestApp"}
    assert applies.counted == [
        ("frontend", "palette", "ConfigMap", "created"),
        ("frontend", "palette", "ConfigMap", "none"),
        ("frontend", "palette", "ConfigMap", "updated"),
    ]


async def test_a_suspending_apply_is_counted_too(app: ComponentHarness) -> None:
    applies = Applies()
    component = frontend().with_resource(Deployment(app.build_deployment())).suspend(True).build()

    await component.reconcile(await context(app, applies))

    assert applies.counted == [("frontend", "deployment", "Deployment", "created")]


@pytest.mark.parametrize("fault", ["mutation", "server"])
async def test_an_apply_that_fails_is_counted_as_failed_and_what_comes_after_it_not_at_all(
    app: ComponentHarness, fault: str
) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("the author's mistake")

    applies = Applies()
    mutated = ConfigMap(app.build_config_map(), mutations=Mutation("broken", broken))
    refused = ConfigMap(app.build_config_map("No Name"))
    component = (
        frontend()
        .with_resource({"mutation": mutated, "server": refused}[fault])
        .with_resource(Deployment(app.build_deployment()))
        .build()
    )

    with pytest.raises(ReconcileError):
        await component.reconcile(await context(app, applies))

    assert applies.counted == [("frontend", "configmap", "ConfigMap", "failed")]


async def test_an_observer_that_runs_no_passes_hears_what_the_engine_does_with_each_resource(
    app: ComponentHarness,
) -> None:
    listener, owner = Listener(), await app.owner()
    ctx = ReconcileContext(client=app.client, owner=owner, clock=app.cluster.clock, observer=listener)
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(Service(app.build_service(), guard=lambda _: blocked("not yet")))
        .build()
    )

    condition = await component.reconcile(ctx)

    assert (condition.reason, condition.message) == ("Blocked", "not yet")
    assert [messages for _, messages in listener.heard] == ["is there", "not yet"]
    assert [identity for identity, _ in listener.heard] == [entry.identity for entry in component.entries]


async def test_events_have_the_reasons_and_messages_of_the_specification(app: ComponentHarness) -> None:
    identity = f"v1/ConfigMap/{app.key.namespace}/settings"
    asleep = Deployment(app.build_deployment(replicas=0), delete_on_suspend=True)
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="blue"))).build())
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="red"))).build())
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="red"))).build())
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map()), orphan_when(True)).build())
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map()), delete()).build())
    await app.wait_until_gone(CONFIG_MAP, "settings")
    await app.reconcile_until("Healthy", frontend().with_resource(asleep).build())
    await app.reconcile(frontend().with_resource(asleep).suspend(True).build())

    messages = [entry for entry in app.events.noted if "Deployment" not in entry[0]]
    assert messages == [
        ("CreatedConfigMap", "Created ConfigMap 'settings'", "Create"),
        ("UpdatedConfigMap", "Updated ConfigMap 'settings'", "Update"),
        ("ResourceOrphaned", f"Resource {identity} orphaned: owner reference removed", "Orphan"),
        ("ResourceDeleted", f"Resource {identity} deleted due to resource deletion flag", "Delete"),
        ("ResourceDeleted", f"Resource {asleep.identity} deleted on suspension", "Delete"),
    ]


async def test_taking_a_field_over_counts_as_an_update(app: ComponentHarness) -> None:
    """Nothing but the record of who owns the field changes, which is a change of the object all the same."""
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="blue"))).build())
    child = await app.find(CONFIG_MAP, "settings")
    assert child is not None
    await app.cluster.client.update({**child, "data": {**child["data"], "size": "xl"}})

    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map(colour="blue", size="xl"))).build())

    assert app.events.noted[-1] == ("UpdatedConfigMap", "Updated ConfigMap 'settings'", "Update")


async def test_what_fails_or_waits_is_told_by_no_event(app: ComponentHarness) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("the author's mistake")

    waiting = ConfigMap(app.build_config_map(), guard=lambda _: blocked("not yet"))
    await app.reconcile(frontend().with_resource(waiting).build())
    with pytest.raises(ReconcileError):
        await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("No Name"))).build())
    with pytest.raises(ReconcileError):
        await app.reconcile(
            frontend().with_resource(ConfigMap(app.build_config_map(), mutations=Mutation("broken", broken))).build()
        )

    assert app.events.noted == []


async def test_log_records_carry_the_component_and_its_condition(
    app: ComponentHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "konverge.component")
    name = f"{app.key.namespace}-reader"
    role = Static(
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}},
        cluster_scoped=True,
    )
    content = Deployment(
        app.build_deployment(image="konverge.test/never-ready:1"), grace_status=lambda _: Grace(GraceStatus.HEALTHY)
    )
    component = (
        frontend().with_resource(role).with_resource(content).with_grace_period(timedelta(milliseconds=1)).build()
    )

    await app.reconcile(component)
    await app.cluster.clock.sleep(1.1)
    await app.reconcile(component)

    records = [record for record in caplog.records if record.name == "konverge.component"]
    messages = [record.getMessage() for record in records]
    assert [message.partition(":")[0].split(" is ")[-1][:18] for message in messages] == [
        "cluster-scoped and",
        "grace inconsistenc",
    ]
    assert {(record.__dict__["component"], record.__dict__["condition"]) for record in records} == {
        ("frontend", "FrontendReady")
    }
    await app.cluster.client.delete(
        GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"), app.key._replace(namespace="", name=name)
    )


async def test_a_grace_inconsistency_is_told_of_what_has_not_converged_and_is_not_suppressed(
    app: ComponentHarness, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "konverge.component")
    loud, quiet = (
        Deployment(
            app.build_deployment(name, image="konverge.test/never-ready:1"),
            grace_status=lambda _: Grace(GraceStatus.HEALTHY),
        )
        for name in ("loud", "quiet")
    )
    component = (
        frontend()
        .with_resource(loud)
        .with_resource(quiet, suppress_grace_inconsistency_warning())
        .with_resource(Service(app.build_service()))
        .with_grace_period(timedelta(milliseconds=1))
        .build()
    )

    await app.reconcile(component)
    await app.cluster.clock.sleep(1.1)
    condition = await app.reconcile(component)

    assert condition.reason == "Creating"
    assert [
        (record.levelname, record.__dict__["resource"], record.__dict__["grace_status"])
        for record in caplog.records
        if record.getMessage().startswith("grace inconsistency")
    ] == [("INFO", loud.identity, "Healthy")]
