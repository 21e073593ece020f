"""The rendering of a custom resource: one reconcile on a private server, and a record of what its steps produce."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from konverge._internal.apply import HIDDEN
from konverge._internal.client import Client
from konverge._internal.component import TimeLimit
from konverge._internal.component.dry_run import DryRun
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_identity, format_time
from konverge._internal.kube.secret_redaction import redact_secret_values
from konverge._internal.mutation import copy_json
from konverge._internal.operator.dry_run import DryRunContext
from konverge._internal.operator.dry_run_cluster import DryRunCluster
from konverge.clock import Clock, SeededEntropy, SimulatedClock
from konverge.errors import ConfigurationError, KonvergeError, format_error
from konverge_box._internal.calls.scripted_answers import OfflineCaller, ScriptedAnswer
from konverge_box._internal.expressions import mask_sensitive
from konverge_box._internal.file import OperatorBox
from konverge_box._internal.providers import ProviderPool
from konverge_box._internal.rendering.field_changes import find_changes
from konverge_box._internal.rendering.private_server import private_server, store_object
from konverge_box._internal.rendering.rendering_model import (
    RenderedGroup,
    RenderedItem,
    RenderedObject,
    RenderedStep,
    Rendering,
)
from konverge_box._internal.runtime import BoxController
from konverge_box._internal.runtime.box_reconciler import BoxReconciler
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.reconcile_state import ReconcileInputs, ReconcileState
from konverge_box._internal.runtime.resource_class import build_resource_class
from konverge_box._internal.runtime.step_order import DeniedError
from konverge_box._internal.runtime.uniqueness import build_cluster_uniqueness_check
from konverge_box._internal.steps.resource_plan import PlannedGroup, PlannedResource

__all__ = ["DEFAULT_TIME", "render_box"]

DEFAULT_TIME = datetime(2026, 1, 1, tzinfo=UTC)
"""The default time of a rendering, always the same."""

_FUNCTION_LIMIT = timedelta(seconds=10)
_FIRST = ("apiVersion", "kind", "metadata")
_HIDDEN_METADATA = ("managedFields", "resourceVersion")
_HIDDEN_STEPS = frozenset({"marks", "report"})


async def render_box(
    box: OperatorBox,
    owner: Object,
    *,
    given: Iterable[Object] = (),
    answers: Mapping[str, ScriptedAnswer] | None = None,
    at: datetime = DEFAULT_TIME,
    namespace: str = "default",
    pool: ProviderPool | None = None,
) -> Rendering:
    """Render the first reconcile of a custom resource; no call is sent and nothing is written.

    It requires a separate event loop with simulated time (`konverge.clock.SimulatedLoop`) that starts at zero.

    Args:
        box: The box.
        owner: The custom resource.
        given: The objects in the cluster.
        answers: The responses to external calls, by name; other calls are not sent.
        at: The time of the reconcile.
        namespace: The namespace for objects without one.
        pool: The providers, which are not called (default: those of installed packages).

    Raises:
        konverge.errors.ConfigurationError: The box has no such custom resource, or a given object is invalid.
    """
    running = BoxController(box, pool=pool)
    name = _find_crd(box, owner)
    pipeline = running.active.pipelines[name]
    clock, entropy = SimulatedClock(at), SeededEntropy()
    kinds = [
        build_resource_class(declared) for declared in box.spec.crds.values() if declared.resource.schema is not None
    ]
    async with private_server(
        kinds, given, namespace, further_kinds=running.operator.registered.assumed_kinds, clock=clock, entropy=entropy
    ) as server:
        rendering = Rendering(
            box=box.metadata.name,
            crd=name,
            object=_format_object_name(owner),
            time=format_time(at),
            result="failed",
            steps=(),
        )
        try:
            live = await store_object(server, owner, namespace)
        except KonvergeError as error:
            return replace(rendering, steps=(RenderedStep(step="object", error=format_error(error)),))
        first = RenderedStep(step="object", object=_build_object(live))
        rendering = replace(rendering, object=_format_object_name(live))
        recorder = await _record_reconcile(running, pipeline, live, server, answers or {}, clock)
    denied = isinstance(recorder.failure, DeniedError)
    return replace(
        rendering,
        result="ok" if recorder.failure is None and not recorder.has_problems else "denied" if denied else "failed",
        steps=(first, *recorder.steps),
        conditions=tuple(recorder.conditions),
    )


@dataclass
class _StepRecorder:
    """The record of a reconcile while it runs."""

    pipeline: Pipeline
    caller: OfflineCaller
    owner: Object
    before: Object = field(default_factory=dict)
    steps: list[RenderedStep] = field(default_factory=list)
    conditions: list[Object] = field(default_factory=list)
    failure: Exception | None = None
    note_count: int = 0

    @property
    def has_problems(self) -> bool:
        """True if an object cannot be rendered."""
        return any(each.problem for step in self.steps for group in step.groups for each in group.objects)

    def on_step(self, step: str, seconds: float, state: ReconcileState) -> None:
        error = ""
        if state.failure is not None and self.failure is None and not isinstance(state.failure, DeniedError):
            error = format_error(state.failure)
        self.failure = state.failure
        notes = tuple(state.notes[self.note_count :])
        self.note_count = len(state.notes)
        if step in _HIDDEN_STEPS and not (error or notes):
            return
        fields = (
            {}
            if error and step not in ("external", "onCreate", "onReconcile", "laterGroups")
            else self._describe_step(step, state)
        )
        self.steps.append(RenderedStep(step=step, error=error, notes=notes, **fields))
        self.before = copy_json(state.object)

    def _describe_step(self, name: str, state: ReconcileState) -> dict[str, Any]:
        declared, scope = self.pipeline.declared, state.scope.names
        match name:
            case "normalize" | "mutation":
                changes = find_changes(self.before, state.object)
                return {"changes": changes, **({"object": _build_object(state.object)} if changes else {})}
            case "validation" if state.results.violations is not None:
                denied, warned = state.results.violations.denied, state.results.violations.warned
                texts = [tuple(f"{each.field}: {each.message}" for each in rules) for rules in (denied, warned)]
                return {"denied": texts[0], "warned": texts[1]}
            case "cross" if declared.cross:
                return {"values": mask_sensitive(scope.get("cross", {}))}
            case "external" if declared.external:
                responses = mask_sensitive(scope.get("external", {}))
                calls = {call: self._describe_call(call, responses) for call in responses}
                return {"values": responses, "calls": calls}
            case "onCreate" | "onReconcile" | "laterGroups" if state.results.plan is not None:
                later = self.pipeline.groups.first_after_providers
                first = min(len(declared.on_create), later)
                places = {
                    "onCreate": slice(first),
                    "onReconcile": slice(first, later),
                    "laterGroups": slice(later, None),
                }
                groups = state.results.plan.groups[places[name]]
                return {"groups": tuple(map(_build_group, groups))} if groups or name != "laterGroups" else {}
            case "forEach" if state.results.plan is not None:
                counts: dict[str, int] = {}
                for entry in (entry for group in state.results.plan.groups for entry in group.entries):
                    if entry.resource.for_each:
                        counts[entry.resource.path] = counts.get(entry.resource.path, 0) + 1
                return {"values": counts} if counts else {}
            case "providers" if declared.providers:
                return {"items": tuple(self._iter_items(state))}
            case "status":
                found = self.owner.get("status") or {}
                status = {key: value for key, value in found.items() if key != "conditions"}
                return {"values": mask_sensitive(status)} if status else {}
        return {}

    def _describe_call(self, name: str, responses: Mapping[str, Any]) -> str:
        if name not in self.caller.requests:
            return "not sent: its conditions do not hold"
        outcome = "answered" if responses[name].get("called") else "not called"
        return f"{outcome}: {self.caller.requests[name]}"

    def _iter_items(self, state: ReconcileState) -> Iterable[RenderedItem]:
        for each in self.pipeline.providers.plan_items(state.scope):
            yield RenderedItem(
                path=each.where,
                provider=each.declared.provider,
                kind=each.kind,
                name=each.item,
                is_skipped=not each.is_desired,
                spec=mask_sensitive(dict(each.spec)),
            )


async def _record_reconcile(
    running: BoxController,
    pipeline: Pipeline,
    live: Object,
    server: Client,
    answers: Mapping[str, ScriptedAnswer],
    clock: Clock,
) -> _StepRecorder:
    entropy = SeededEntropy()
    with closing(TimeLimit(_FUNCTION_LIMIT)) as limit:
        dry_run = DryRun(server, live, clock=clock, time_limit=limit)
        cluster = DryRunCluster(server, dry_run.client, running.operator.registered.indexes)
        ctx = DryRunContext(
            client=dry_run.client,
            owner=dry_run.owner,
            clock=clock,
            time_limit=limit,
            runner=dry_run.reconcile,
            dry_run_cluster=cluster,
        )
        async with OfflineCaller(answers, clock=clock, entropy=entropy) as caller:
            recorder = _StepRecorder(pipeline, caller, ctx.owner, before=copy_json(live))
            is_unique = await build_cluster_uniqueness_check(ctx.cluster, pipeline, ctx.owner)
            inputs = ReconcileInputs(
                pipeline=pipeline,
                ctx=ctx,
                caller=caller,
                entropy=entropy,
                is_unique=is_unique,
                now=clock.now(),
                is_dry_run=True,
            )
            reconciler = BoxReconciler(inputs, recorder)
            try:
                await reconciler.reconcile()
            except Exception as error:  # noqa: BLE001  # the rendering shows every error of a step
                recorder.failure = reconciler.state.failure or error
                if reconciler.state.failure is None:
                    recorder.steps.append(RenderedStep(step="status", error=format_error(error)))
        conditions = (ctx.owner.get("status") or {}).get("conditions") or []
        recorder.conditions = [
            {name: value for name, value in each.items() if name != "lastTransitionTime"} for each in conditions
        ]
    return recorder


def _build_group(group: PlannedGroup) -> RenderedGroup:
    return RenderedGroup(
        name=group.name,
        condition=group.condition_type,
        is_off=not group.is_on,
        is_suspended=group.is_suspended,
        waits_for=group.waits_for,
        objects=tuple(map(_build_resource, group.entries)),
    )


def _build_resource(entry: PlannedResource) -> RenderedObject:
    manifest = (
        None if entry.object is None else _order_fields(redact_secret_values(mask_sensitive(entry.object), HIDDEN))
    )
    return RenderedObject(
        path=entry.resource.path,
        object=format_identity(entry.gvk, entry.key),
        decision=entry.action.value,
        why=entry.explanation,
        blocked=entry.blocked,
        problem=entry.problem,
        manifest=manifest,
    )


def _build_object(obj: Object) -> Object:
    masked: Object = mask_sensitive(obj)
    metadata = {name: value for name, value in masked["metadata"].items() if name not in _HIDDEN_METADATA}
    return _order_fields({**{name: value for name, value in masked.items() if name != "status"}, "metadata": metadata})


def _order_fields(obj: Object) -> Object:
    """Return an object with its fields in the conventional order."""
    return {name: obj[name] for name in (*_FIRST, *obj) if name in obj}


def _find_crd(box: OperatorBox, owner: Object) -> str:
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
    raise ConfigurationError(f"box {box.metadata.name}: expected a custom resource of {known}, found {gvk}")


def _format_object_name(obj: Object) -> str:
    return format_identity(GroupVersionKind.of(obj), ObjectKey.of(obj))
