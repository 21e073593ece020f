"""Decisions of the engine where the specification leaves a choice, on both clusters."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.errors import ReconcileError
from konverge.feature import BooleanGate
from konverge.guards import UNBLOCKED, blocked
from konverge.kube import Object
from konverge.options import auxiliary, block_on_absence, delete, gated_by, orphan_when, read_only
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap, Deployment, Grace, GraceStatus, Service, Static
from tests.component.app import CONFIG_MAP, DEPLOYMENT, ComponentHarness

pytestmark = pytest.mark.anyio

NEVER_READY = "konverge.test/never-ready:1"
MOMENT = timedelta(milliseconds=1)


def frontend() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


def raise_error(_: object) -> Any:
    raise RuntimeError("the author's mistake")


def undeletable(app: ComponentHarness, name: str) -> Static:
    """A resource that no client can request, because its name has a slash."""
    metadata = {"name": f"{name}/x", "namespace": app.key.namespace}
    return Static({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})


async def longer_than_a_moment(app: ComponentHarness) -> None:
    await app.cluster.clock.sleep(0.01)


def is_released(obj: Object | None) -> bool:
    return obj is not None and not obj["metadata"].get("ownerReferences")


# Grace


async def test_the_grace_goes_on_while_a_guard_blocks(app: ComponentHarness) -> None:
    verdicts = [blocked("not yet")]
    component = (
        frontend()
        .with_resource(Deployment(app.build_deployment(), guard=lambda _: verdicts.pop() if verdicts else UNBLOCKED))
        .with_grace_period(MOMENT)
        .build()
    )

    waiting = await app.reconcile(component)
    await longer_than_a_moment(app)
    cleared = await app.reconcile(component)
    recovered = await app.reconcile_until("Healthy", component)

    assert (waiting.reason, cleared.reason, recovered.status) == ("Blocked", "Down", "True")


async def test_a_blocked_auxiliary_resource_is_down_without_asking_its_grace_handler(app: ComponentHarness) -> None:
    def never_asked(_: Object) -> Any:
        raise AssertionError("the grace handler was asked")

    deployment = Deployment(app.build_deployment(), guard=lambda _: blocked("no licence"), grace_status=never_asked)
    component = frontend().with_resource(deployment, auxiliary()).with_grace_period(MOMENT).build()

    await app.reconcile(component)
    await longer_than_a_moment(app)
    condition = await app.reconcile(component)

    assert (condition.reason, condition.message) == ("Down", "Component is down: no licence")


async def test_ready_resources_are_graded_too(app: ComponentHarness) -> None:
    worse = Service(app.build_service(), grace_status=lambda _: Grace(GraceStatus.DOWN, "nobody answers"))
    late = Deployment(
        app.build_deployment(image=NEVER_READY), grace_status=lambda _: Grace(GraceStatus.DEGRADED, "a pod is late")
    )
    component = frontend().with_resource(late).with_resource(worse).with_grace_period(MOMENT).build()

    await app.reconcile(component)
    await longer_than_a_moment(app)
    condition = await app.reconcile(component)

    assert (condition.reason, condition.message) == ("Down", "Component is down: nobody answers")


async def test_an_auxiliary_resource_is_not_graded(app: ComponentHarness) -> None:
    def graded(name: str, status: GraceStatus) -> Deployment:
        return Deployment(app.build_deployment(name, image=NEVER_READY), grace_status=lambda _: Grace(status, name))

    component = (
        frontend()
        .with_resource(graded("companion", GraceStatus.DOWN), auxiliary())
        .with_resource(graded("web", GraceStatus.DEGRADED))
        .with_grace_period(MOMENT)
        .build()
    )

    await app.reconcile(component)
    await longer_than_a_moment(app)
    condition = await app.reconcile(component)

    assert (condition.reason, condition.message) == ("Degraded", "Component is degraded: web")


async def test_a_guard_without_a_reason_is_told_by_its_resource(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map(), guard=lambda _: blocked("")))
        .with_grace_period(MOMENT)
        .build()
    )

    waiting = await app.reconcile(component)
    await longer_than_a_moment(app)
    late = await app.reconcile(component)

    blocked_message = f"v1/ConfigMap/{app.key.namespace}/settings is blocked"
    assert (waiting.reason, waiting.message) == ("Blocked", blocked_message)
    assert (late.reason, late.message) == ("Down", f"Component is down: {blocked_message}")


async def test_a_grace_handler_that_answers_no_status_is_an_error(app: ComponentHarness) -> None:
    deployment = Deployment(app.build_deployment(image=NEVER_READY), grace_status=lambda _: "Down")  # type: ignore[arg-type,return-value]
    component = frontend().with_resource(deployment).with_grace_period(MOMENT).build()

    await app.reconcile(component)
    await longer_than_a_moment(app)
    with pytest.raises(ReconcileError, match="grace status of resource apps/v1/Deployment/.*/web: .* found 'Down'"):
        await app.reconcile(component)

    assert (await app.condition("FrontendReady")).reason == "Error"


# Errors


async def test_an_error_after_a_condition_was_staged_begins_a_time_of_its_own(app: ComponentHarness) -> None:
    converging = frontend().with_resource(Deployment(app.build_deployment(image=NEVER_READY))).build()
    failing = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()))
        .with_resource(undeletable(app, "a"), delete())
        .build()
    )

    before = await app.reconcile(converging)
    await app.cluster.clock.sleep(1.1)
    with pytest.raises(ReconcileError):
        await app.reconcile(failing)
    after = await app.condition("FrontendReady")

    assert (before.status, after.status, after.reason) == ("False", "False", "Error")
    assert before.last_transition_time is not None
    assert after.last_transition_time is not None
    assert after.last_transition_time > before.last_transition_time


async def test_deletions_do_not_run_after_an_error_in_grading(app: ComponentHarness) -> None:
    old = ConfigMap(app.build_config_map("old"))
    graded = Deployment(app.build_deployment(image=NEVER_READY), grace_status=raise_error)
    await app.reconcile(frontend().with_resource(graded).with_resource(old).with_grace_period(MOMENT).build())
    await longer_than_a_moment(app)

    with pytest.raises(ReconcileError, match="failed to determine grace status of resource"):
        await app.reconcile(
            frontend().with_resource(graded).with_resource(old, delete()).with_grace_period(MOMENT).build()
        )

    assert await app.find(CONFIG_MAP, "old") is not None


async def test_deletions_do_not_run_after_an_error_while_suspending(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("old"))).build())
    component = (
        frontend()
        .with_resource(Deployment(app.build_deployment(), extract=raise_error))
        .with_resource(ConfigMap(app.build_config_map("old")), delete())
        .suspend(True)
        .build()
    )

    with pytest.raises(ReconcileError, match="failed to extract data from resource"):
        await app.reconcile(component)

    assert await app.find(CONFIG_MAP, "old") is not None


async def test_a_failed_deletion_holds_up_neither_the_others_nor_the_orphans(app: ComponentHarness) -> None:
    await app.reconcile(
        frontend()
        .with_resource(ConfigMap(app.build_config_map("old")))
        .with_resource(ConfigMap(app.build_config_map("free")))
        .build()
    )
    component = (
        frontend()
        .with_resource(undeletable(app, "a"), delete())
        .with_resource(ConfigMap(app.build_config_map("old")), delete())
        .with_resource(undeletable(app, "b"), delete())
        .with_resource(ConfigMap(app.build_config_map("free")), orphan_when(True))
        .build()
    )

    with pytest.raises(ReconcileError, match="ConfigMap/.*/a/x: .*; .*ConfigMap/.*/b/x: "):
        await app.reconcile(component)

    await app.wait_until_gone(CONFIG_MAP, "old")
    assert is_released(await app.find(CONFIG_MAP, "free"))


# Deletions


async def test_a_component_switched_off_deletes_in_the_order_of_registration(app: ComponentHarness) -> None:
    def component(enabled: bool) -> Component:
        return (
            frontend()
            .with_feature_gate(BooleanGate(enabled))
            .with_resource(ConfigMap(app.build_config_map("third")), delete() if not enabled else None)
            .with_resource(ConfigMap(app.build_config_map("first")))
            .with_resource(ConfigMap(app.build_config_map("second")), gated_by(BooleanGate(enabled)))
            .build()
        )

    await app.reconcile(component(True))
    made = len(app.events.noted)
    await app.reconcile(component(False))

    deleted = [message.split()[1].rpartition("/")[2] for _, message, _ in app.events.noted[made:]]
    assert deleted == ["third", "first", "second"]


async def test_a_component_that_cannot_be_switched_off_says_why(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    component = (
        frontend()
        .with_feature_gate(BooleanGate(False))
        .with_resource(undeletable(app, "a"), delete())
        .with_resource(ConfigMap(app.build_config_map()))
        .build()
    )

    with pytest.raises(ReconcileError, match="failed to delete resource .*ConfigMap/.*/a/x: "):
        await app.reconcile(component)

    await app.wait_until_gone(CONFIG_MAP, "settings")
    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_a_blocked_component_releases_its_orphans(app: ComponentHarness) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map("free"))).build())
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map(), guard=lambda _: blocked("not yet")))
        .with_resource(ConfigMap(app.build_config_map("free")), orphan_when(True))
        .build()
    )

    condition = await app.reconcile(component)

    assert condition.reason == "Blocked"
    assert is_released(await app.find(CONFIG_MAP, "free"))


# Suspension


async def test_a_component_behind_the_barrier_is_created_suspended_once_its_prerequisite_is_met(
    app: ComponentHarness,
) -> None:
    backend = (
        ComponentBuilder("backend", condition_type="BackendReady")
        .with_resource(ConfigMap(app.build_config_map()))
        .build()
    )
    component = (
        frontend()
        .with_prerequisite(depends_on("BackendReady"))
        .with_resource(Deployment(app.build_deployment()))
        .suspend(True)
        .build()
    )

    condition = await app.reconcile(backend, component)

    created = await app.find(DEPLOYMENT, "web")
    assert condition.reason in {"Suspending", "Suspended"}
    assert created is not None
    assert created["spec"]["replicas"] == 0


async def test_data_is_extracted_from_what_is_suspended_and_from_nothing_else(app: ComponentHarness) -> None:
    await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("users")})
    seen: list[str] = []

    def note(live: Object) -> None:
        seen.append(live["metadata"]["name"])

    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("users"), extract=note), read_only())
        .with_resource(ConfigMap(app.build_config_map(), extract=note))
        .with_resource(Deployment(app.build_deployment(), extract=note))
        .suspend(True)
        .build()
    )

    await app.reconcile(component)

    assert seen == ["web"]


async def test_a_suspension_function_that_answers_no_status_is_an_error(app: ComponentHarness) -> None:
    deployment = Deployment(app.build_deployment(), suspension_status=lambda _: True)  # type: ignore[arg-type,return-value]

    with pytest.raises(ReconcileError, match="suspension status of resource apps/v1/Deployment/.*/web: .* found True"):
        await app.reconcile(frontend().with_resource(deployment).suspend(True).build())

    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_a_resource_deleted_on_suspend_is_suspended_first(app: ComponentHarness) -> None:
    def component(suspended: bool) -> Component:
        return (
            frontend()
            .with_resource(Deployment(app.build_deployment(), delete_on_suspend=True))
            .suspend(suspended)
            .build()
        )

    await app.reconcile_until("Healthy", component(False))
    condition = await app.reconcile(component(True))

    asleep = await app.find(DEPLOYMENT, "web")
    assert condition.reason == "Suspending"
    assert asleep is not None
    assert asleep["spec"]["replicas"] == 0


async def test_an_auxiliary_resource_counts_for_suspension(app: ComponentHarness) -> None:
    def component(suspended: bool) -> Component:
        return frontend().with_resource(Deployment(app.build_deployment()), auxiliary()).suspend(suspended).build()

    await app.reconcile(component(False))
    condition = await app.reconcile(component(True))

    assert condition.reason == "Suspending"


# Participation


async def test_an_auxiliary_resource_that_cannot_be_applied_is_an_error(app: ComponentHarness) -> None:
    component = frontend().with_resource(ConfigMap(app.build_config_map("No Name")), auxiliary()).build()

    with pytest.raises(ReconcileError, match="failed to apply resource v1/ConfigMap/.*/No Name"):
        await app.reconcile(component)

    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_an_absent_auxiliary_resource_blocks_on_request(app: ComponentHarness) -> None:
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map()), read_only(), block_on_absence(), auxiliary())
        .build()
    )

    condition = await app.reconcile(component)

    assert (condition.reason, condition.message) == (
        "Blocked",
        f"waiting for v1/ConfigMap/{app.key.namespace}/settings",
    )


@pytest.mark.parametrize(
    "register",
    [
        pytest.param(lambda app, builder: builder, id="no resources"),
        pytest.param(
            lambda app, builder: builder.with_resource(
                Deployment(app.build_deployment(image=NEVER_READY)), auxiliary()
            ),
            id="auxiliary ones only",
        ),
    ],
)
async def test_a_component_that_nothing_takes_part_in_is_healthy(
    app: ComponentHarness, register: Callable[[ComponentHarness, ComponentBuilder], ComponentBuilder]
) -> None:
    condition = await app.reconcile(register(app, frontend()).build())

    assert (condition.status, condition.reason) == ("True", "Healthy")
