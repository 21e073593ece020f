"""The script of the demo: each action on the cluster and the states that must follow. Pure.

A `DemoStep` performs one action and names waypoints that must be reached in order. `StepProgress` compares a step with
the state after each event, so that no state is missed, however briefly it lasts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from konverge._internal.kube import GroupVersionKind, Object, find_condition

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
"""The kinds of the application's objects, from the owner down."""

_INSTANCE = "app.kubernetes.io/instance"
_NEVER_READY = "konverge.test/never-ready:1"

ObjectName: TypeAlias = tuple[str, str]
"""Kind and name; the demo uses one namespace."""


@dataclass(frozen=True, slots=True)
class DemoState:
    """The state of the application's objects at one moment.

    Args:
        app: The name of the custom resource. Objects that are neither it nor labeled with its name are left out.
        objects: By kind and name.
    """

    app: str
    objects: Mapping[ObjectName, Object] = field(default_factory=dict)

    def with_object(self, obj: Object) -> DemoState:
        """Return the state after an object was added or changed; an older version of an object changes nothing.

        The response to a write and the watch event of an earlier write can arrive in either order.
        """
        metadata = obj["metadata"]
        if metadata["name"] != self.app and (metadata.get("labels") or {}).get(_INSTANCE) != self.app:
            return self
        current = self.get(obj["kind"], metadata["name"])
        if current is not None and int(current["metadata"]["resourceVersion"]) >= int(metadata["resourceVersion"]):
            return self
        return DemoState(self.app, {**self.objects, (obj["kind"], metadata["name"]): obj})

    def without_object(self, kind: str, name: str) -> DemoState:
        """Return the state after an object was deleted."""
        return DemoState(self.app, {key: obj for key, obj in self.objects.items() if key != (kind, name)})

    def get(self, kind: str, name: str) -> Object | None:
        """Return one object; None if it does not exist."""
        return self.objects.get((kind, name))

    @property
    def webapp(self) -> Object | None:
        """The custom resource; None if it does not exist."""
        return self.get(WEBAPP.kind, self.app)


StateCheck: TypeAlias = Callable[[DemoState, DemoState], str]
"""Compares the current state with the state when the step began.

Returns what it observes instead of the expected state, and an empty text if the expectation is met.
"""


@dataclass(frozen=True, slots=True)
class Waypoint:
    """A state that must be observed. `goal` describes it to the reader."""

    goal: str
    check: StateCheck


@dataclass(frozen=True, slots=True)
class ApplyAction:
    """Server-side apply of an object."""

    obj: Object


@dataclass(frozen=True, slots=True)
class DeleteAction:
    """Deletion of the object with this name."""

    gvk: GroupVersionKind
    name: str


@dataclass(frozen=True, slots=True)
class IdleAction:
    """A period without changes, in which the demo counts the operator's requests."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DemoStep:
    """One step of the demo.

    Args:
        title: The action in the words of a reader.
        action: The action.
        waypoints: The states that must be observed afterwards, in this order.
        deadline_seconds: The time limit of the whole step in seconds.
    """

    title: str
    action: ApplyAction | DeleteAction | IdleAction
    waypoints: tuple[Waypoint, ...] = ()
    deadline_seconds: float = 15


class StepProgress:
    """Progress of a step. It must observe each state."""

    def __init__(self, step: DemoStep, state: DemoState) -> None:
        self._before = state
        self._ahead = list(step.waypoints)

    @property
    def is_complete(self) -> bool:
        """True if all waypoints are reached."""
        return not self._ahead

    def observe(self, state: DemoState) -> tuple[Waypoint, ...]:
        """Return the waypoints that this state reaches, in order: none, one or several."""
        reached = []
        while self._ahead and not self._ahead[0].check(state, self._before):
            reached.append(self._ahead.pop(0))
        return tuple(reached)

    def describe_missing(self, state: DemoState) -> str:
        """Return the goal of the next waypoint and the observed state; an empty text if the step is complete."""
        if not self._ahead:
            return ""
        return f"expected: {self._ahead[0].goal}; found: {self._ahead[0].check(state, self._before)}"


def build_webapp_steps(webapp: Object) -> tuple[DemoStep, ...]:
    """Return the steps of the demo for the web application of ``examples/webapp``.

    Args:
        webapp: The content of ``webapp.yaml``; each step changes one field of it.
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
            "An old Service is left",
            ApplyAction(legacy_service),
            (_expect_present("Service", legacy),),
        ),
        build_creation_step(webapp, "The WebApp is created"),
        DemoStep("Nothing changes for 3 seconds", IdleAction(3)),
        DemoStep(
            "Its Deployment is deleted",
            DeleteAction(GroupVersionKind("apps", "v1", "Deployment"), frontend),
            (
                _expect_replacement("Deployment", frontend),
                _expect_unready("FrontendReady"),
                _expect_unready("Ready"),
                _expect_condition("FrontendReady", "True", "Healthy"),
                _expect_condition("Ready", "True", "Healthy"),
            ),
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
            "A release that never starts",
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
        # The garbage collector of a real cluster checks for new kinds every 30 s.
        DemoStep("The WebApp is deleted", DeleteAction(WEBAPP, name), (_expect_empty(),), deadline_seconds=45),
    )


def build_creation_step(webapp: Object, title: str) -> DemoStep:
    """Return the step that creates the application: the backend, then the frontend, without outdated objects."""
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
        condition = None if webapp is None else find_condition(webapp, condition_type)
        if webapp is None or condition is None:
            return f"no {condition_type}"
        if condition.observed_generation != webapp["metadata"]["generation"]:
            return f"{condition_type} is about generation {condition.observed_generation}"
        if (condition.status, condition.reason) == (status, reason):
            return ""
        return f"{condition_type} is {condition.status} ({condition.reason}): {condition.message}"

    return Waypoint(f"{condition_type} is {status} ({reason})", check)


def _expect_unready(condition_type: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        condition = None if now.webapp is None else find_condition(now.webapp, condition_type)
        if condition is None:
            return f"no {condition_type}"
        return "" if condition.status == "False" else f"{condition_type} is {condition.status} ({condition.reason})"

    return Waypoint(f"{condition_type} is False", check)


def _expect_present(kind: str, name: str) -> Waypoint:
    return Waypoint(f"{kind} {name} exists", lambda now, _before: "" if now.get(kind, name) else "it does not")


def _expect_absent(kind: str, name: str) -> Waypoint:
    return Waypoint(f"{kind} {name} is gone", lambda now, _before: "it is still there" if now.get(kind, name) else "")


def _expect_replacement(kind: str, name: str) -> Waypoint:
    def check(now: DemoState, before: DemoState) -> str:
        present, earlier = now.get(kind, name), before.get(kind, name)
        if present is None:
            return "it is gone"
        assert earlier is not None, f"the demo deletes {kind} {name}, so it existed before"
        return "" if present["metadata"]["uid"] != earlier["metadata"]["uid"] else "it is still the old one"

    return Waypoint(f"{kind} {name} is back", check)


def _expect_replicas(kind: str, name: str, replicas: int) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        workload = now.get(kind, name)
        if workload is None:
            return "it does not exist"
        running = (workload.get("status") or {}).get("replicas", 0)
        return "" if workload["spec"]["replicas"] == running == replicas else f"{running} replicas"

    return Waypoint(f"{kind} {name} has {replicas} replicas", check)


def _expect_no_env(kind: str, name: str, variable: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        workload = now.get(kind, name)
        if workload is None:
            return "it does not exist"
        containers = workload["spec"]["template"]["spec"]["containers"]
        names = {entry["name"] for container in containers for entry in container.get("env") or ()}
        return f"{variable} is still set" if variable in names else ""

    return Waypoint(f"{kind} {name} has no {variable}", check)


def _expect_no_kind(kind: str) -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        return ", ".join(f"{present} {name}" for present, name in now.objects if present == kind)

    return Waypoint(f"no {kind} is left", check)


def _expect_empty() -> Waypoint:
    def check(now: DemoState, _before: DemoState) -> str:
        return ", ".join(f"{kind} {name}" for kind, name in now.objects)

    return Waypoint("nothing of it is left", check)
