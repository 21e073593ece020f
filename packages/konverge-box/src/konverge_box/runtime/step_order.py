"""The steps of a pass, in their order, and what each does with what came before.

The table `ORDER` is the order. A step gets the `ReconcileState` and adds to it; what its expressions may read is the
scope,
into which only the steps before it have put something. The first error stops the steps after it, but for those that run
`always`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from konverge.component import Component
from konverge.errors import ConflictError, KonvergeError
from konverge.kube import Condition, Object
from konverge.operator import OwnerContext
from konverge_box.calls import Caller, CallError
from konverge_box.providers import DispatchResult
from konverge_box.runtime.box_conditions import (
    READY,
    VALIDATION_FAILED,
    VALIDATION_WARNING,
    build_validation_conditions,
    find_stale_types,
    find_suspect_types,
    is_stale_field,
)
from konverge_box.runtime.pipeline import Pipeline
from konverge_box.steps import Scope, StepError
from konverge_box.steps.component_builder import build_component
from konverge_box.steps.creation_marks import plan_marks
from konverge_box.steps.labels import CREATED
from konverge_box.steps.resource_plan import ResourcePlan
from konverge_box.steps.validation import RuleEvaluationError, RuleViolations, summarize_violations

__all__ = ["STEP_ORDER", "DeniedError", "PipelineStep", "ReconcileState", "report_kept_object"]

_PROVIDERS = "providers"


class DeniedError(KonvergeError):
    """The custom resource breaks rules that deny it.

    Args:
        violations: All of them.
    """

    def __init__(self, violations: RuleViolations) -> None:
        super().__init__(summarize_violations(violations.denied))
        self.violations = violations


@dataclass
class ReconcileState:
    """What a pass has come to so far.

    Args:
        pipeline: The steps.
        ctx: The context of the pass; its owner is the object in the cluster, on which conditions are staged.
        scope: What expressions of the next step may read.
        object: The canonical object.
        caller: Makes external calls.
        now: The time of the pass.
        failure: What stopped the steps; None so far.
        violations: What validation has found; None before it.
        plan: What is made; None before it is known.
        components: Those that have been reconciled.
        provider_result: What became of what providers keep; None before.
        foreign_conditions: Types of conditions, and a field of the status, that are known to be somebody else's.
        notes: What went wrong that stops nothing.
        status_without_fields: The status before the file's own fields were put on it; None before that.
        requeue_after: When to look again; None for no need.
    """

    pipeline: Pipeline
    ctx: OwnerContext
    scope: Scope
    object: Object
    caller: Caller
    now: datetime
    foreign_conditions: set[str]
    failure: Exception | None = None
    violations: RuleViolations | None = None
    plan: ResourcePlan | None = None
    components: list[Component] = field(default_factory=list)
    provider_result: DispatchResult | None = None
    notes: list[str] = field(default_factory=list)
    status_without_fields: Object | None = None
    requeue_after: timedelta | None = None

    def replace_object(self, obj: Object) -> None:
        """The canonical object is another one: all later steps see its spec and metadata."""
        self.object = obj
        self.scope = self.scope.with_names(metadata=obj.get("metadata", {}), spec=obj.get("spec", {}))

    def request_requeue(self, after: timedelta | None) -> None:
        """Ask for another pass after so long; the earliest wins."""
        if after is not None and (self.requeue_after is None or after < self.requeue_after):
            self.requeue_after = after

    @property
    def parts(self) -> list[tuple[str, Condition]]:
        """What Ready sums up."""
        owner = self.ctx.owner
        found = [(component.name, component.condition(owner)) for component in self.components]
        if self.provider_result is not None:
            found += [
                (condition.type.removesuffix("Ready"), condition) for condition in self.provider_result.conditions
            ]
        return found


async def _run_normalize(state: ReconcileState) -> None:
    state.replace_object(state.pipeline.normalization.normalize_object(state.scope, state.object))


async def _run_mutation(state: ReconcileState) -> None:
    state.replace_object(state.pipeline.mutations.apply_rules(state.scope, state.object).object)


async def _run_validation(state: ReconcileState) -> None:
    try:
        state.violations = state.pipeline.validation.check_rules(state.scope)
    except RuleEvaluationError as error:
        state.violations = error.violations
        raise
    if state.violations.denied:
        raise DeniedError(state.violations)


async def _run_cross(state: ReconcileState) -> None:
    cluster = state.ctx.cluster
    found = await state.pipeline.observations.observe(state.scope, cluster, cluster.without_read_tracking())
    state.scope = state.scope.with_names(cross=found)


async def _run_external(state: ReconcileState) -> None:
    namespace = state.ctx.owner_key.namespace
    try:
        found = await state.pipeline.calls.run_calls(
            state.scope, state.caller, reader=state.ctx.cluster, namespace=namespace
        )
    except CallError as error:
        # What was answered is still there to be shown.
        state.scope = state.scope.with_names(external=error.results)
        raise
    state.scope = state.scope.with_names(external=found)
    for name, kept_for in state.pipeline.requeue_periods.items():
        if found[name]["called"]:
            state.request_requeue(kept_for)


async def _run_for_each(state: ReconcileState) -> None:
    ctx = state.ctx
    state.plan = await state.pipeline.groups.plan(state.scope, ctx.owner, ctx.cluster, state.now)
    ctx.request_requeue(state.plan.requeue_at)
    for entry in (entry for group in state.plan.groups for entry in group.entries):
        if entry.is_foreign:
            report_kept_object(ctx, f"{entry.gvk.kind} {entry.key} is not of this object, and stays")


def report_kept_object(ctx: OwnerContext, told: str) -> None:
    """Say by an event, once in the life of the process, that an object is not deleted since it is another's."""
    about = ("left", ctx.owner_uid, told)
    if ctx.events is not None and ctx.applied_cache.find_note(*about) is None:
        ctx.events.warning(ctx.owner, reason="ResourceLeftAlone", message=told, action="Delete")
        ctx.applied_cache.store_note(told, *about)


async def _run_on_create(state: ReconcileState) -> None:
    await _reconcile_groups(state, slice(len(state.pipeline.declared.on_create)))


async def _run_on_reconcile(state: ReconcileState) -> None:
    await _reconcile_groups(state, slice(len(state.pipeline.declared.on_create), None))


async def _reconcile_groups(state: ReconcileState, which: slice) -> None:
    assert state.plan is not None, "they are planned before"
    for group in state.plan.groups[which]:
        component = build_component(group, adopts=state.pipeline.declared.reconcile.adopt)
        state.components.append(component)
        await component.reconcile(state.ctx)


async def _save_marks(state: ReconcileState) -> None:
    """Note what was made once. Also after an error: what is there is there."""
    if state.plan is None:
        return
    ctx = state.ctx
    marks = await plan_marks(state.plan, ctx.owner, ctx.cluster)
    if marks is None:
        return
    try:
        answer = await _write_marks(ctx, ctx.owner, marks)
    except ConflictError:
        live = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
        marks = await plan_marks(state.plan, live, ctx.cluster)
        if marks is not None:
            await _write_marks(ctx, live, marks)
        # The owner keeps the version in which it was read: who writes by it later in this pass must hear of the change.
        return
    metadata = ctx.owner["metadata"]
    metadata["annotations"] = dict(answer["metadata"].get("annotations") or {})
    metadata["resourceVersion"] = answer["metadata"]["resourceVersion"]


async def _write_marks(ctx: OwnerContext, owner: Object, marks: list[str]) -> Object:
    """Write the marks of an owner as it was read.

    Raises:
        ConflictError: It has changed since: an older list must not replace a newer one, whose Jobs would run again.
    """
    metadata = owner["metadata"]
    # With the UID, a later object of that name is none the wiser.
    same = {"uid": ctx.owner_uid, "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**same, "annotations": {CREATED: json.dumps(marks)}}}
    return await ctx.cluster.patch(ctx.owner_gvk, ctx.owner_key, body, patch_type="merge")


async def _run_providers(state: ReconcileState) -> None:
    ctx = state.ctx
    if ctx.observer is not None and state.pipeline.declared.providers:
        state.notes.append("what providers keep is not rehearsed")  # no dry run reaches them
        return
    dispatched = await state.pipeline.providers.reconcile(state.scope, ctx.owner, ctx.cluster, ctx.cluster)
    state.provider_result = dispatched
    state.scope = state.scope.with_names(providers=dispatched.results)
    state.request_requeue(dispatched.requeue_after)
    for condition in dispatched.conditions:
        ctx.stage(condition)
    if dispatched.status:
        _get_status(ctx.owner)[_PROVIDERS] = dispatched.status
    if dispatched.problems:
        raise StepError(state.pipeline.where, "; ".join(map(str, dispatched.problems)))


async def _update_status(state: ReconcileState) -> None:
    """The fields of the file's own, from everything that there is by now, also after an error."""
    ctx, pipeline = state.ctx, state.pipeline
    if state.plan is not None:  # without one nobody knows what there should be: fields that ask keep what they had
        try:
            children = await pipeline.children.read(ctx.owner, state.plan.children, ctx.cluster, ctx.secret_values)
        except KonvergeError as error:
            state.notes.append(f"status: children cannot be read: {error}")
        else:
            state.scope = state.scope.with_names(children=children)
    state.status_without_fields = ctx.owner.get("status") or {}
    result = pipeline.status_fields.evaluate_fields(state.scope, failed=state.failure is not None)
    ctx.owner["status"] = result.apply_to_status(ctx.owner.get("status"))
    state.notes += [f"status: {problem}" for problem in result.problems]


async def _report_conditions(state: ReconcileState) -> None:
    """What validation found, and conditions that nobody reports any more."""
    ctx, pipeline = state.ctx, state.pipeline
    violations = state.violations
    if violations is not None:
        for condition in build_validation_conditions(
            ctx.owner, violations, can_deny=pipeline.can_deny, can_warn=pipeline.can_warn
        ):
            ctx.stage(condition)
    stale = [] if pipeline.can_deny else [VALIDATION_FAILED]
    stale += [] if pipeline.can_warn else [VALIDATION_WARNING]
    ctx.retire_conditions(*stale, *await _find_stale_conditions(state))
    if ctx.owner_generation is not None:
        _get_status(ctx.owner)["observedGeneration"] = ctx.owner_generation


async def _find_stale_conditions(state: ReconcileState) -> list[str]:
    """Conditions of what the file had once; what it lists of providers goes at once.

    Who wrote one, only the server can say, and it is asked once.
    """
    ctx = state.ctx
    if state.failure is not None:
        return []
    declared = {READY, *state.pipeline.groups.condition_types}
    if state.provider_result is not None:
        declared |= {condition.type for condition in state.provider_result.conditions}
    suspected = [kind for kind in find_suspect_types(ctx.owner, declared) if kind not in state.foreign_conditions]
    status = _get_status(ctx.owner)
    has_none = state.provider_result is not None and not state.provider_result.status
    lists_old_items = has_none and _PROVIDERS in status and _PROVIDERS not in state.foreign_conditions
    if not (suspected or lists_old_items):
        return []
    live = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
    stale = find_stale_types(live, suspected)
    state.foreign_conditions.update(kind for kind in suspected if kind not in stale)
    if lists_old_items and is_stale_field(live, _PROVIDERS):
        del status[_PROVIDERS]
    elif lists_old_items:
        state.foreign_conditions.add(_PROVIDERS)
    return stale


def _get_status(owner: Object) -> Object:
    status = owner.get("status")
    if not isinstance(status, dict):
        status = owner["status"] = {}
    return status


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step.

    Args:
        name: As the file calls it, or what it is.
        run: Does it.
        always: Also after an error.
    """

    name: str
    run: Callable[[ReconcileState], Awaitable[None]]
    always: bool = False


STEP_ORDER = (
    PipelineStep("normalize", _run_normalize),
    PipelineStep("mutation", _run_mutation),
    PipelineStep("validation", _run_validation),
    PipelineStep("cross", _run_cross),
    PipelineStep("external", _run_external),
    PipelineStep("forEach", _run_for_each),
    PipelineStep("onCreate", _run_on_create),
    PipelineStep("onReconcile", _run_on_reconcile),
    PipelineStep("marks", _save_marks, always=True),
    PipelineStep("providers", _run_providers),
    PipelineStep("status", _update_status, always=True),
    PipelineStep("report", _report_conditions, always=True),
)
"""The order of a pass."""
