"""Rendering a custom resource: one pass whose steps are watched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from konverge.apply import HIDDEN
from konverge.box.calls.known_answers import KnownAnswer, UnaskedCaller
from konverge.box.expressions import masked
from konverge.box.file import KINDS, OperatorBox
from konverge.box.providers import ProviderPool
from konverge.box.rendering.differences import differences
from konverge.box.rendering.server import given_server, stored
from konverge.box.rendering.values import RenderedGroup, RenderedItem, RenderedObject, RenderedStep, Rendering
from konverge.box.running import RunningBox
from konverge.box.running.box_pass import BoxPass
from konverge.box.running.definition import class_of
from konverge.box.running.order import DeniedError, PassState
from konverge.box.running.pipeline import Pipeline
from konverge.box.running.uniqueness import uniqueness_in
from konverge.box.steps.planned import PlannedGroup, PlannedResource
from konverge.client import Client
from konverge.clock import Clock, SeededEntropy, SimulatedClock
from konverge.component import TimeLimit
from konverge.component.rehearsal import Rehearsing
from konverge.errors import ConfigurationError, KonvergeError, describe
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_time, identity
from konverge.kube.secrets import without_secrets
from konverge.mutation import json_copy
from konverge.operator.rehearsed_cluster import RehearsedCluster
from konverge.operator.rehearsing import RehearsedContext

__all__ = ["DEFAULT_TIME", "render_box"]

DEFAULT_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of a rendering that is given none: the same each time."""

_FUNCTION_LIMIT = timedelta(seconds=10)
_FIRST = ("apiVersion", "kind", "metadata")
_UNSHOWN = ("managedFields", "resourceVersion")
_UNTOLD_STEPS = frozenset({"marks", "report"})


async def render_box(
    box: OperatorBox,
    owner: Object,
    *,
    given: Iterable[Object] = (),
    answers: Mapping[str, KnownAnswer] | None = None,
    at: datetime = DEFAULT_TIME,
    namespace: str = "default",
    pool: ProviderPool | None = None,
) -> Rendering:
    """What the first pass over a custom resource would come to; nothing is called and nothing is written.

    It needs an event loop of its own with simulated time (`konverge.clock.SimulatedLoop`), whose time is zero.

    Args:
        box: The box.
        owner: The custom resource.
        given: What would be in the cluster.
        answers: What external calls are answered, by name; others are not made.
        at: The time of the pass.
        namespace: Of objects that name none.
        pool: The providers, none of which is called; those of installed packages when not given.

    Raises:
        konverge.errors.ConfigurationError: The box has no such custom resource, or a given object is none.
    """
    running = RunningBox(box, pool=pool)
    name = _crd_of(box, owner)
    pipeline = running.pipelines[name]
    clock, entropy = SimulatedClock(at), SeededEntropy()
    kinds = [class_of(declared) for declared in box.spec.crds.values()]
    made = _kinds_made(box)
    async with given_server(kinds, given, namespace, made=made, clock=clock, entropy=entropy) as server:
        shown = Rendering(
            box=box.metadata.name, crd=name, object=_named(owner), time=format_time(at), result="failed", steps=()
        )
        try:
            live = await stored(server, owner, namespace)
        except KonvergeError as error:
            return replace(shown, steps=(RenderedStep(step="object", error=describe(error)),))
        first = RenderedStep(step="object", object=_shown_object(live))
        shown = replace(shown, object=_named(live))
        watched = await _watched(running, pipeline, live, server, answers or {}, clock)
    denied = isinstance(watched.failure, DeniedError)
    return replace(
        shown,
        result="ok" if watched.failure is None and not watched.has_problems else "denied" if denied else "failed",
        steps=(first, *watched.steps),
        conditions=tuple(watched.conditions),
    )


@dataclass
class _Watched:
    """What is seen of a pass while it runs."""

    pipeline: Pipeline
    caller: UnaskedCaller
    state: PassState | None = None
    before: Object = field(default_factory=dict)
    steps: list[RenderedStep] = field(default_factory=list)
    conditions: list[Object] = field(default_factory=list)
    failure: Exception | None = None
    noted: int = 0

    @property
    def has_problems(self) -> bool:
        """Tell whether an object cannot be rendered."""
        return any(each.problem for step in self.steps for group in step.groups for each in group.objects)

    def stepped(self, name: str, seconds: float) -> None:
        state = self.state
        assert state is not None, "a pass steps when it is made"
        error = ""
        if state.failure is not None and self.failure is None and not isinstance(state.failure, DeniedError):
            error = describe(state.failure)
        self.failure = state.failure
        notes = tuple(state.notes[self.noted :])
        self.noted = len(state.notes)
        if name in _UNTOLD_STEPS and not (error or notes):
            return
        made = {} if error and name not in ("external", "onCreate", "onReconcile") else self._made(name, state)
        self.steps.append(RenderedStep(step=name, error=error, notes=notes, **made))
        self.before = json_copy(state.object)

    def _made(self, name: str, state: PassState) -> dict[str, Any]:
        declared, scope = self.pipeline.declared, state.scope.names
        match name:
            case "normalize" | "mutation":
                changes = differences(self.before, state.object)
                return {"changes": changes, **({"object": _shown_object(state.object)} if changes else {})}
            case "validation" if state.violations is not None:
                denied, warned = state.violations.denied, state.violations.warned
                texts = [tuple(f"{each.field}: {each.message}" for each in found) for found in (denied, warned)]
                return {"denied": texts[0], "warned": texts[1]}
            case "cross" if declared.cross:
                return {"values": masked(scope.get("cross", {}))}
            case "external" if declared.external:
                answered = masked(scope.get("external", {}))
                told = {each: self._told(each, answered) for each in answered}
                return {"values": answered, "calls": told}
            case "onCreate" | "onReconcile" if state.plan is not None:
                first = len(declared.on_create)
                groups = state.plan.groups[:first] if name == "onCreate" else state.plan.groups[first:]
                return {"groups": tuple(map(_shown_group, groups))}
            case "forEach" if state.plan is not None:
                counts: dict[str, int] = {}
                for entry in (entry for group in state.plan.groups for entry in group.entries):
                    if entry.resource.for_each is not None:
                        counts[entry.resource.path] = counts.get(entry.resource.path, 0) + 1
                return {"values": counts} if counts else {}
            case "providers" if declared.providers:
                return {"items": tuple(self._items(state))}
            case "status":
                found = state.ctx.owner.get("status") or {}
                status = {key: value for key, value in found.items() if key != "conditions"}
                return {"values": masked(status)} if status else {}
        return {}

    def _told(self, name: str, answered: Mapping[str, Any]) -> str:
        if name not in self.caller.asked:
            return "not made: its conditions do not hold"
        how = "answered" if answered[name].get("called") else "not called"
        return f"{how}: {self.caller.asked[name]}"

    def _items(self, state: PassState) -> Iterable[RenderedItem]:
        for each in self.pipeline.providers.planned(state.scope):
            yield RenderedItem(
                path=each.where,
                provider=each.declared.provider,
                kind=each.kind,
                name=each.item,
                is_skipped=not each.is_wanted,
                spec=masked(dict(each.spec)),
            )


async def _watched(
    running: RunningBox,
    pipeline: Pipeline,
    live: Object,
    server: Client,
    answers: Mapping[str, KnownAnswer],
    clock: Clock,
) -> _Watched:
    entropy = SeededEntropy()
    with closing(TimeLimit(_FUNCTION_LIMIT)) as limit:
        rehearsed = Rehearsing(server, live, clock=clock, time_limit=limit)
        cluster = RehearsedCluster(server, rehearsed.client, running.operator.registered.indexes)
        ctx = RehearsedContext(
            client=rehearsed.client,
            owner=rehearsed.owner,
            clock=clock,
            time_limit=limit,
            observer=rehearsed,
            rehearsed_cluster=cluster,
        )
        async with UnaskedCaller(answers, clock=clock, entropy=entropy) as caller:
            watched = _Watched(pipeline, caller, before=json_copy(live))
            is_unique = await uniqueness_in(ctx.cluster, pipeline, ctx.owner)
            one = BoxPass(
                pipeline,
                ctx,
                caller=caller,
                entropy=entropy,
                is_unique=is_unique,
                strangers=set(),
                stepped=watched.stepped,
            )
            watched.state = one.state
            try:
                await one.reconcile()
            except Exception as error:  # noqa: BLE001  # what a step has met is what is to be shown
                watched.failure = one.state.failure or error
                if one.state.failure is None:
                    watched.steps.append(RenderedStep(step="status", error=describe(error)))
        found = (ctx.owner.get("status") or {}).get("conditions") or []
        watched.conditions = [
            {name: value for name, value in each.items() if name != "lastTransitionTime"} for each in found
        ]
    return watched


def _shown_group(group: PlannedGroup) -> RenderedGroup:
    return RenderedGroup(
        name=group.name,
        condition=group.condition_type,
        is_off=not group.is_on,
        is_suspended=group.is_suspended,
        waits_for=group.waits_for,
        objects=tuple(map(_shown_resource, group.entries)),
    )


def _shown_resource(entry: PlannedResource) -> RenderedObject:
    manifest = None if entry.object is None else _ordered(without_secrets(masked(entry.object), HIDDEN))
    return RenderedObject(
        path=entry.resource.path,
        object=identity(entry.gvk, entry.key),
        decision=entry.decision.value,
        why=entry.why,
        blocked=entry.blocked,
        problem=entry.problem,
        manifest=manifest,
    )


def _shown_object(obj: Object) -> Object:
    shown: Object = masked(obj)
    metadata = {name: value for name, value in shown["metadata"].items() if name not in _UNSHOWN}
    return _ordered({**{name: value for name, value in shown.items() if name != "status"}, "metadata": metadata})


def _ordered(obj: Object) -> Object:
    """As people write objects."""
    return {name: obj[name] for name in (*_FIRST, *obj) if name in obj}


def _kinds_made(box: OperatorBox) -> dict[GroupVersionKind, bool]:
    """The kinds of all that is made, and whether they have namespaces, as far as the file tells."""
    return {
        resource.gvk: KINDS[resource.kind].namespaced
        for declared in box.spec.crds.values()
        for resource in declared.resources
    }


def _crd_of(box: OperatorBox, owner: Object) -> str:
    if not isinstance(owner.get("apiVersion"), str) or not isinstance(owner.get("kind"), str):
        raise ConfigurationError("the custom resource: expected apiVersion and kind, found none")
    metadata = owner.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ConfigurationError("the custom resource: expected metadata.name, found none")
    gvk = GroupVersionKind.of(owner)
    for name, declared in box.spec.crds.items():
        if declared.resource.gvk == gvk:
            return name
    known = ", ".join(str(declared.resource.gvk) for declared in box.spec.crds.values())
    raise ConfigurationError(f"the box {box.metadata.name} has no custom resource {gvk}; it has: {known}")


def _named(obj: Object) -> str:
    return identity(GroupVersionKind.of(obj), ObjectKey.of(obj))
