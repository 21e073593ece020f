"""The story of the demo: what is done to the cluster, and what must be seen before the next thing is done. Pure.

A `Step` does one thing and names waypoints, which must be reached in their order. `Progress` holds a step against the
world as it changes, event by event, so that no state is missed, however briefly it lasts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from konverge.kube import GroupVersionKind, Object, find_condition

__all__ = [
    "FOLLOWED",
    "WEBAPP",
    "Apply",
    "Delete",
    "Progress",
    "StayQuiet",
    "Step",
    "Waypoint",
    "World",
    "creation",
    "webapp_story",
]

WEBAPP = GroupVersionKind("demo.konverge.dev", "v1alpha1", "WebApp")
FOLLOWED = (
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

Reference: TypeAlias = tuple[str, str]
"""Kind and name; the story plays in one namespace."""


@dataclass(frozen=True, slots=True)
class World:
    """The application as the cluster shows it at one moment.

    Args:
        app: The name of the custom resource. Objects that are neither it nor labelled with it are left out.
        objects: By kind and name.
    """

    app: str
    objects: Mapping[Reference, Object] = field(default_factory=dict)

    def with_object(self, obj: Object) -> World:
        """The world after an object came or changed; an older state than the known one changes nothing.

        The answer to a write and the watch event of an earlier one may come in either order.
        """
        metadata = obj["metadata"]
        if metadata["name"] != self.app and (metadata.get("labels") or {}).get(_INSTANCE) != self.app:
            return self
        known = self.get(obj["kind"], metadata["name"])
        if known is not None and int(known["metadata"]["resourceVersion"]) >= int(metadata["resourceVersion"]):
            return self
        return World(self.app, {**self.objects, (obj["kind"], metadata["name"]): obj})

    def without(self, kind: str, name: str) -> World:
        """The world after an object went."""
        return World(self.app, {found: obj for found, obj in self.objects.items() if found != (kind, name)})

    def get(self, kind: str, name: str) -> Object | None:
        """One object; None when there is none."""
        return self.objects.get((kind, name))

    @property
    def webapp(self) -> Object | None:
        """The custom resource."""
        return self.get(WEBAPP.kind, self.app)


Check: TypeAlias = Callable[[World, World], str]
"""Looks at the world now and at the world in which the step began; answers what is seen instead of what is awaited,
empty when it is there."""


@dataclass(frozen=True, slots=True)
class Waypoint:
    """Something that must be seen. `goal` says what, for the reader."""

    goal: str
    check: Check


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of this object."""

    obj: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletion of this object."""

    gvk: GroupVersionKind
    name: str


@dataclass(frozen=True, slots=True)
class StayQuiet:
    """Touch nothing for so long, and count what the operator sends."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happens in the story.

    Args:
        title: What is done, in the reader's words.
        act: What is done.
        waypoints: What must be seen then, in this order.
        deadline_seconds: How long all of it may take.
    """

    title: str
    act: Apply | Delete | StayQuiet
    waypoints: tuple[Waypoint, ...] = ()
    deadline_seconds: float = 15


class Progress:
    """How far a step is. Feed it every state of the world."""

    def __init__(self, step: Step, world: World) -> None:
        self._before = world
        self._ahead = list(step.waypoints)

    @property
    def is_complete(self) -> bool:
        """Tell whether all waypoints are reached."""
        return not self._ahead

    def observe(self, world: World) -> tuple[Waypoint, ...]:
        """The waypoints that this state of the world reaches, in order: none, one or several."""
        reached = []
        while self._ahead and not self._ahead[0].check(world, self._before):
            reached.append(self._ahead.pop(0))
        return tuple(reached)

    def missing(self, world: World) -> str:
        """What the next waypoint awaits, and what is seen instead; empty when the step is complete."""
        if not self._ahead:
            return ""
        return f"expected: {self._ahead[0].goal}; seen: {self._ahead[0].check(world, self._before)}"


def webapp_story(webapp: Object) -> tuple[Step, ...]:
    """The story of the web application of ``examples/webapp``.

    Args:
        webapp: What the user wrote in ``webapp.yaml``; the story changes one field of it at a time.
    """
    name, namespace = webapp["metadata"]["name"], webapp["metadata"]["namespace"]
    frontend, tracing, legacy = f"{name}-frontend", f"{name}-tracing", f"{name}-web"

    def changed(**spec: Any) -> Apply:
        return Apply(copy.deepcopy(webapp) | {"spec": {**webapp["spec"], **spec}})

    legacy_service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": legacy, "namespace": namespace, "labels": {_INSTANCE: name}},
        "spec": {"ports": [{"port": 80}]},
    }
    return (
        Step("A Service is left from an earlier version", Apply(legacy_service), (_exists("Service", legacy),)),
        creation(webapp, "The WebApp is created"),
        Step("Nobody touches anything for ten seconds", StayQuiet(10)),
        Step(
            "The frontend's Service is deleted by hand",
            Delete(GroupVersionKind("", "v1", "Service"), frontend),
            (_replaced("Service", frontend),),
        ),
        Step(
            "The WebApp is suspended",
            changed(suspended=True),
            (
                _condition("FrontendReady", "True", "Suspended"),
                _condition("BackendReady", "True", "Suspended"),
                _scaled("Deployment", frontend, 0),
                _scaled("StatefulSet", f"{name}-backend", 0),
                _none("Pod"),
            ),
        ),
        Step(
            "The WebApp is resumed",
            Apply(webapp),
            (_condition("BackendReady", "True", "Healthy"), _condition("FrontendReady", "True", "Healthy")),
        ),
        Step(
            "A release whose image never starts",
            changed(image=_NEVER_READY),
            (
                _condition("FrontendReady", "False", "Updating"),
                _condition("FrontendReady", "False", "Degraded"),
                _condition("Ready", "False", "Degraded"),
            ),
            deadline_seconds=25,
        ),
        Step(
            "The image is put right",
            Apply(webapp),
            (_condition("FrontendReady", "True", "Healthy"), _condition("Ready", "True", "Healthy")),
        ),
        Step(
            "Tracing is switched off",
            changed(tracing=False),
            (
                _absent("ConfigMap", tracing),
                _without_env("Deployment", frontend, "OTEL_EXPORTER_OTLP_ENDPOINT"),
                _condition("FrontendReady", "True", "Healthy"),
            ),
        ),
        # A real garbage collector looks for kinds that are new to it every 30 s.
        Step("The WebApp is deleted", Delete(WEBAPP, name), (_nothing_left(),), deadline_seconds=45),
    )


def creation(webapp: Object, title: str) -> Step:
    """The application comes up, the frontend after the backend; what the operator no longer wants is gone."""
    name = webapp["metadata"]["name"]
    return Step(
        title,
        Apply(webapp),
        (
            _condition("FrontendReady", "False", "PrerequisiteNotMet"),
            _condition("BackendReady", "True", "Healthy"),
            _condition("FrontendReady", "True", "Healthy"),
            _condition("Ready", "True", "Healthy"),
            _exists("ConfigMap", f"{name}-tracing"),
            _absent("Service", f"{name}-web"),
        ),
    )


def _condition(condition_type: str, status: str, reason: str) -> Waypoint:
    def check(now: World, _before: World) -> str:
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


def _exists(kind: str, name: str) -> Waypoint:
    return Waypoint(f"{kind} {name} exists", lambda now, _before: "" if now.get(kind, name) else "it does not")


def _absent(kind: str, name: str) -> Waypoint:
    return Waypoint(f"{kind} {name} is gone", lambda now, _before: "it is still there" if now.get(kind, name) else "")


def _replaced(kind: str, name: str) -> Waypoint:
    def check(now: World, before: World) -> str:
        found, earlier = now.get(kind, name), before.get(kind, name)
        if found is None:
            return "it is gone"
        assert earlier is not None, f"the story deletes {kind} {name}, so it was there"
        return "" if found["metadata"]["uid"] != earlier["metadata"]["uid"] else "it is still the old one"

    return Waypoint(f"{kind} {name} is back", check)


def _scaled(kind: str, name: str, replicas: int) -> Waypoint:
    def check(now: World, _before: World) -> str:
        found = now.get(kind, name)
        if found is None:
            return "it does not exist"
        running = (found.get("status") or {}).get("replicas", 0)
        return "" if found["spec"]["replicas"] == running == replicas else f"{running} replicas"

    return Waypoint(f"{kind} {name} has {replicas} replicas", check)


def _without_env(kind: str, name: str, variable: str) -> Waypoint:
    def check(now: World, _before: World) -> str:
        found = now.get(kind, name)
        if found is None:
            return "it does not exist"
        containers = found["spec"]["template"]["spec"]["containers"]
        names = {entry["name"] for container in containers for entry in container.get("env") or ()}
        return f"{variable} is still set" if variable in names else ""

    return Waypoint(f"{kind} {name} has no {variable}", check)


def _none(kind: str) -> Waypoint:
    def check(now: World, _before: World) -> str:
        return ", ".join(f"{found} {name}" for found, name in now.objects if found == kind)

    return Waypoint(f"no {kind} is left", check)


def _nothing_left() -> Waypoint:
    def check(now: World, _before: World) -> str:
        return ", ".join(f"{kind} {name}" for kind, name in now.objects)

    return Waypoint("nothing of it is left", check)
