"""The script of the demo, compared with states from tests."""

from __future__ import annotations

from typing import Any

from konverge.kube import Object
from konverge_cluster._internal.cli.demo_script import (
    WEBAPP,
    ApplyAction,
    DemoState,
    DemoStep,
    StepProgress,
    Waypoint,
    build_webapp_steps,
)

WEBAPP_YAML: Object = {
    "apiVersion": "demo.konverge.dev/v1alpha1",
    "kind": "WebApp",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {"image": "app:1", "tracing": True},
}
SHOP_LABELS = {"app.kubernetes.io/instance": "shop"}


def webapp(version: int = 1, generation: int = 1, **reasons: str) -> Object:
    """Return a WebApp whose conditions have these reasons, all for the first generation."""
    conditions = [
        {"type": name, "status": "True", "reason": reason, "observedGeneration": 1} for name, reason in reasons.items()
    ]
    metadata = {"name": "shop", "resourceVersion": str(version), "generation": generation}
    return {"kind": "WebApp", "metadata": metadata, "status": {"conditions": conditions}}


def service(version: int = 1, uid: str = "1", **metadata: Any) -> Object:
    found = {"name": "shop-frontend", "resourceVersion": str(version), "uid": uid, "labels": SHOP_LABELS, **metadata}
    return {"kind": "Service", "metadata": found}


def step(title: str) -> DemoStep:
    return next(found for found in build_webapp_steps(WEBAPP_YAML) if found.title == title)


def has(kind: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        return "" if any(found == kind for found, _ in now.objects) else f"no {kind}"

    return Waypoint(f"a {kind}", check)


def test_an_older_state_does_not_replace_a_newer_one() -> None:
    world = DemoState("shop").with_object(service(version=10, uid="new"))

    world = world.with_object(service(version=9, uid="old"))

    assert world.objects["Service", "shop-frontend"]["metadata"]["uid"] == "new"


def test_objects_of_others_are_out_of_view() -> None:
    world = DemoState("shop").with_object(service(name="kubernetes", labels={}))

    assert not world.objects


def test_waypoints_are_reached_in_their_order() -> None:
    progress = StepProgress(DemoStep("", ApplyAction({}), (has("WebApp"), has("Service"))), DemoState("shop"))

    only_the_second = progress.observe(DemoState("shop").with_object(service()))
    both = progress.observe(DemoState("shop").with_object(service()).with_object(webapp()))

    assert only_the_second == ()
    assert [waypoint.goal for waypoint in both] == ["a WebApp", "a Service"]
    assert progress.is_complete


def test_what_was_reached_stays_reached() -> None:
    progress = StepProgress(DemoStep("", ApplyAction({}), (has("Service"), has("WebApp"))), DemoState("shop"))
    progress.observe(DemoState("shop").with_object(service()))

    progress.observe(DemoState("shop").with_object(webapp()))

    assert progress.is_complete


def deployment(version: int = 1, uid: str = "1") -> Object:
    return service(version, uid) | {"kind": "Deployment"}


def test_what_is_missing_says_what_is_seen_instead() -> None:
    before = DemoState("shop").with_object(deployment(uid="old"))
    progress = StepProgress(step("Its Deployment is deleted"), before)
    goal = "expected: Deployment shop-frontend is back"

    assert progress.describe_missing(before) == f"{goal}; found: it is still the old one"
    assert progress.describe_missing(DemoState("shop")) == f"{goal}; found: it is gone"


def test_a_deployment_is_healed_when_another_one_of_that_name_is_ready() -> None:
    before = DemoState("shop").with_object(deployment(uid="old"))
    progress = StepProgress(step("Its Deployment is deleted"), before)
    is_back = before.without_object("Deployment", "shop-frontend").with_object(deployment(version=2, uid="new"))
    broken = {"type": "FrontendReady", "status": "False", "reason": "Creating", "observedGeneration": 1}
    unready = webapp(version=2) | {"status": {"conditions": [broken, broken | {"type": "Ready"}]}}
    steps = [
        is_back.with_object(webapp(FrontendReady="Healthy", Ready="Healthy")),
        is_back.with_object(unready),
        is_back.with_object(webapp(3, FrontendReady="Healthy", Ready="Healthy")),
    ]

    reached = []
    for state in steps:
        progress.observe(state)
        reached.append(progress.is_complete)

    assert reached == [False, False, True]


def test_a_condition_about_an_earlier_generation_does_not_count() -> None:
    progress = StepProgress(step("The WebApp is resumed"), DemoState("shop"))

    progress.observe(
        DemoState("shop").with_object(webapp(generation=2, BackendReady="Healthy", FrontendReady="Healthy"))
    )
    too_early = progress.is_complete
    progress.observe(
        DemoState("shop").with_object(webapp(generation=1, BackendReady="Healthy", FrontendReady="Healthy"))
    )

    assert not too_early
    assert progress.is_complete


def test_the_end_is_reached_only_when_nothing_is_left() -> None:
    world = DemoState("shop").with_object(webapp()).with_object(service())
    progress = StepProgress(step("The WebApp is deleted"), world)

    progress.observe(world.without_object("WebApp", "shop"))
    still_missing = progress.describe_missing(world.without_object("WebApp", "shop"))
    progress.observe(DemoState("shop"))

    assert still_missing == "expected: nothing of it is left; found: Service shop-frontend"
    assert progress.is_complete


def test_each_step_changes_what_the_user_wrote_and_nothing_else() -> None:
    applied = [found.action.obj for found in build_webapp_steps(WEBAPP_YAML) if isinstance(found.action, ApplyAction)]
    specs = [obj["spec"] for obj in applied if obj["kind"] == WEBAPP.kind]

    assert {"image": "app:1", "tracing": True, "suspended": True} in specs
    assert {"image": "app:1", "tracing": False} in specs
    assert WEBAPP_YAML["spec"] == {"image": "app:1", "tracing": True}
