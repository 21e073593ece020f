"""The story of the demo: what is done to the cluster, and what must be seen before the next thing is done. Pure.

A `Step` does one thing and names waypoints, which must be reached in their order. `StepProgress` holds a step against
the
world as it changes, event by event, so that no state is missed, however briefly it lasts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from konverge.kube import GroupVersionKind, Object, find_condition

__all__ = [
    "WATCHED_KINDS",
    "WEBAPP",
    "ApplyAction",
    "DeleteAction",
    "DemoState",
    "DemoStep",
    "IdleAction",
    "StepProgress",
    "Waypoint",
    "build_creation_step",
    "build_webapp_steps",
]

WEBAPP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
WATCHED_KINDS = (
    GroupVersionKind("", "v1", "ConfigMap"),
    GroupVersionKind("", "v1", "Secret"),
    GroupVersionKind("", "v1", "Service"),
    GroupVersionKind("apps", "v1", "StatefulSet"),
    GroupVersionKind("apps", "v1", "Deployment"),
    GroupVersionKind("apps", "v1", "ReplicaSet"),
    GroupVersionKind("", "v1", "Pod"),
)
"""The kinds that the application consists of, top down."""

_INSTANCE = "app.kubernetes.io/instance"
_NEVER_READY = "konverge.test/never-ready:1"

ObjectName: TypeAlias = tuple[str, str]
"""Kind and name; the story plays in one namespace."""


@dataclass(frozen=True, slots=True)
class DemoState:
    """The application as the cluster shows it at one moment.

    Args:
        app: The name of the custom resource. Objects that are neither it nor labelled with it are left out.
        objects: By kind and name.
    """

    app: str
    objects: Mapping[ObjectName, Object] = field(default_factory=dict)

    def with_object(self, obj: Object) -> DemoState:
        """The world after an object came or changed; an older state than the known one changes nothing.

        The answer to a write and the watch event of an earlier one may come in either order.
        """
        metadata = obj["metadata"]
        if metadata["name"] != self.app and (metadata.get("labels") or {}).get(_INSTANCE) != self.app:
            return self
        known = self.get(obj["kind"], metadata["name"])
        if known is not None and int(known["metadata"]["resourceVersion"]) >= int(metadata["resourceVersion"]):
            return self
        return DemoState(self.app, {**self.objects, (obj["kind"], metadata["name"]): obj})

    def without_object(self, kind: str, name: str) -> DemoState:
        """The world after an object went."""
        return DemoState(self.app, {found: obj for found, obj in self.objects.items() if found != (kind, name)})

    def get(self, kind: str, name: str) -> Object | None:
        """One object; None when there is none."""
        return self.objects.get((kind, name))

    @property
    def webapp(self) -> Object | None:
        """The custom resource."""
        return self.get(WEBAPP.kind, self.app)


StateCheck: TypeAlias = Callable[[DemoState, DemoState], str]
"""Looks at the world now and at the world in which the step began; answers what is seen instead of what is awaited,
empty when it is there."""


@dataclass(frozen=True, slots=True)
class Waypoint:
    """Something that must be seen. `goal` says what, for the reader."""

    goal: str
    check: StateCheck


@dataclass(frozen=True, slots=True)
class ApplyAction:
    """Server-side apply of this object."""

    obj: Object


@dataclass(frozen=True, slots=True)
class DeleteAction:
    """Deletion of this object."""

    gvk: GroupVersionKind
    name: str


@dataclass(frozen=True, slots=True)
class IdleAction:
    """Touch nothing for so long, and count what the operator sends."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One thing that happens in the story.

    Args:
        title: What is done, in the reader's words.
        action: What is done.
        waypoints: What must be seen then, in this order.
        deadline_seconds: How long all of it may take.
    """

    title: str
    action: ApplyAction | DeleteAction | IdleAction
    waypoints: tuple[Waypoint, ...] = ()
    deadline_seconds: float = 15


class StepProgress:
    """How far a step is. Feed it every state of the world."""

    def __init__(self, step: DemoStep, world: DemoState) -> None:
        self._before = world
        self._ahead = list(step.waypoints)

    @property
    def is_complete(self) -> bool:
        """Tell whether all waypoints are reached."""
        return not self._ahead

    def observe(self, world: DemoState) -> tuple[Waypoint, ...]:
        """The waypoints that this state of the world reaches, in order: none, one or several."""
        reached = []
        while self._ahead and not self._ahead[0].check(world, self._before):
            reached.append(self._ahead.pop(0))
        return tuple(reached)

    def describe_missing(self, world: DemoState) -> str:
        """What the next waypoint awaits, and what is seen instead; empty when the step is complete."""
        if not self._ahead:
            return ""
        return f"expected: {self._ahead[0].goal}; seen: {self._ahead[0].check(world, self._before)}"


def build_webapp_steps(webapp: Object) -> tuple[DemoStep, ...]:
    """The story of the web application of ``examples/webapp``.

    Args:
        webapp: What the user wrote in ``webapp.yaml``; the story changes one field of it at a time.
    """
    name, namespace = webapp["metadata"]["name"], webapp["metadata"]["namespace"]
    frontend, tracing, legacy = f"{name}-frontend", f"{name}-tracing", f"{name}-web"

    def with_spec(**spec: Any) -> ApplyAction:
        return ApplyAction(copy.deepcopy(webapp) | {"spec": {**webapp["spec"], **spec}})

    legacy_service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": legacy, "namespace": namespace, "labels": {_INSTANCE: name}},
        "spec": {"ports": [{"port": 80}]},
    }
    return (
        DemoStep(
            "A Service is left from an earlier version",
            ApplyAction(legacy_service),
            (_expect_present("Service", legacy),),
        ),
        build_creation_step(webapp, "The WebApp is created"),
        DemoStep("Nobody touches anything for ten seconds", IdleAction(10)),
        DemoStep(
            "The frontend's Service is deleted by hand",
            DeleteAction(GroupVersionKind("", "v1", "Service"), frontend),
            (_expect_replacement("Service", frontend),),
        ),
        DemoStep(
            "The WebApp is suspended",
            with_spec(suspended=True),
            (
                _expect_condition("FrontendReady", "True", "Suspended"),
                _expect_condition("BackendReady", "True", "Suspended"),
                _expect_replicas("Deployment", frontend, 0),
                _expect_replicas("StatefulSet", f"{name}-backend", 0),
                _expect_no_kind("Pod"),
            ),
        ),
        DemoStep(
            "The WebApp is resumed",
            ApplyAction(webapp),
            (
                _expect_condition("BackendReady", "True", "Healthy"),
                _expect_condition("FrontendReady", "True", "Healthy"),
            ),
        ),
        DemoStep(
            "A release whose image never starts",
            with_spec(image=_NEVER_READY),
            (
                _expect_condition("FrontendReady", "False", "Updating"),
                _expect_condition("FrontendReady", "False", "Degraded"),
                _expect_condition("Ready", "False", "Degraded"),
            ),
            deadline_seconds=25,
        ),
        DemoStep(
            "The image is put right",
            ApplyAction(webapp),
            (_expect_condition("FrontendReady", "True", "Healthy"), _expect_condition("Ready", "True", "Healthy")),
        ),
        DemoStep(
            "Tracing is switched off",
            with_spec(tracing=False),
            (
                _expect_absent("ConfigMap", tracing),
                _expect_no_env("Deployment", frontend, "OTEL_EXPORTER_OTLP_ENDPOINT"),
                _expect_condition("FrontendReady", "True", "Healthy"),
            ),
        ),
        # A real garbage collector looks for kinds that are new to it every 30 s.
        DemoStep("The WebApp is deleted", DeleteAction(WEBAPP, name), (_expect_empty(),), deadline_seconds=45),
    )


def build_creation_step(webapp: Object, title: str) -> DemoStep:
    """The application comes up, the frontend after the backend; what the operator no longer wants is gone."""
    name = webapp["metadata"]["name"]
    return DemoStep(
        title,
        ApplyAction(webapp),
        (
            _expect_condition("FrontendReady", "False", "PrerequisiteNotMet"),
            _expect_condition("BackendReady", "True", "Healthy"),
            _expect_condition("FrontendReady", "True", "Healthy"),
            _expect_condition("Ready", "True", "Healthy"),
            _expect_present("ConfigMap", f"{name}-tracing"),
            _expect_absent("Service", f"{name}-web"),
        ),
    )


def _expect_condition(condition_type: str, status: str, reason: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        webapp = now.webapp
        found = None if webapp is None else find_condition(webapp, condition_type)
        if webapp is None or found is None:
            return f"no {condition_type}"
        if found.observed_generation != webapp["metadata"]["generation"]:
            return f"{condition_type} is about generation {found.observed_generation}"
        if (found.status, found.reason) == (status, reason):
            return ""
        return f"{condition_type} is {found.status} ({found.reason}): {found.message}"

    return Waypoint(f"{condition_type} is {status} ({reason})", check)


def _expect_present(kind: str, name: str) -> Waypoint:
    return Waypoint(f"{kind} {name} exists", lambda now, _before: "" if now.get(kind, name) else "it does not")


def _expect_absent(kind: str, name: str) -> Waypoint:
    return Waypoint(f"{kind} {name} is gone", lambda now, _before: "it is still there" if now.get(kind, name) else "")


def _expect_replacement(kind: str, name: str) -> Waypoint:
    def check(now: DemoState, before: DemoState) -> str:
        found, earlier = now.get(kind, name), before.get(kind, name)
        if found is None:
            return "it is gone"
        assert earlier is not None, f"the story deletes {kind} {name}, so it was there"
        return "" if found["metadata"]["uid"] != earlier["metadata"]["uid"] else "it is still the old one"

    return Waypoint(f"{kind} {name} is back", check)


def _expect_replicas(kind: str, name: str, replicas: int) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        found = now.get(kind, name)
        if found is None:
            return "it does not exist"
        running = (found.get("status") or {}).get("replicas", 0)
        return "" if found["spec"]["replicas"] == running == replicas else f"{running} replicas"

    return Waypoint(f"{kind} {name} has {replicas} replicas", check)


def _expect_no_env(kind: str, name: str, variable: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        found = now.get(kind, name)
        if found is None:
            return "it does not exist"
        containers = found["spec"]["template"]["spec"]["containers"]
        names = {entry["name"] for container in containers for entry in container.get("env") or ()}
        return f"{variable} is still set" if variable in names else ""

    return Waypoint(f"{kind} {name} has no {variable}", check)


def _expect_no_kind(kind: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        return ", ".join(f"{found} {name}" for found, name in now.objects if found == kind)

    return Waypoint(f"no {kind} is left", check)


def _expect_empty() -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        return ", ".join(f"{kind} {name}" for kind, name in now.objects)

    return Waypoint("nothing of it is left", check)
