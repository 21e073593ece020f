"""The steps of a reconcile and their order: the table `STEP_ORDER`.

A step gets the inputs of the reconcile and adds its results to the `ReconcileState`. Its expressions read the scope,
which contains only the results of earlier steps. The first error skips all later steps except those that run `always`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from konverge._internal.kube import Object
from konverge._internal.operator import OwnerContext
from konverge.errors import ConflictError, KonvergeError
from konverge_box._internal.calls import CallError
from konverge_box._internal.runtime.box_conditions import (
    READY,
    VALIDATION_FAILED,
    VALIDATION_WARNING,
    build_validation_conditions,
    find_stale_types,
    find_suspect_types,
    is_stale_field,
)
from konverge_box._internal.runtime.reconcile_state import ReconcileInputs, ReconcileState
from konverge_box._internal.steps import StepError
from konverge_box._internal.steps.component_builder import build_component
from konverge_box._internal.steps.creation_marks import plan_marks
from konverge_box._internal.steps.labels import CREATED
from konverge_box._internal.steps.validation import RuleEvaluationError, RuleViolations

__all__ = ["STEP_ORDER", "DeniedError", "PipelineStep", "report_kept_object", "report_once"]

_PROVIDERS = "providers"


class DeniedError(KonvergeError):
    """An error that reports the deny rules that the custom resource breaks.

    Args:
        violations: All broken rules.
    """

    def __init__(self, violations: RuleViolations) -> None:
        super().__init__(violations.summarize_denial())
        self.violations = violations


async def _run_normalize(inputs: ReconcileInputs, state: ReconcileState) -> None:
    state.replace_object(inputs.pipeline.normalization.normalize_object(state.scope, state.object))


async def _run_mutation(inputs: ReconcileInputs, state: ReconcileState) -> None:
    state.replace_object(inputs.pipeline.mutations.apply_rules(state.scope, state.object).object)


async def _run_validation(inputs: ReconcileInputs, state: ReconcileState) -> None:
    try:
        violations = state.results.violations = inputs.pipeline.validation.check_rules(state.scope)
    except RuleEvaluationError as error:
        state.results.violations = error.violations
        raise
    if violations.denied:
        raise DeniedError(violations)


async def _run_cross(inputs: ReconcileInputs, state: ReconcileState) -> None:
    cluster = inputs.ctx.cluster
    observed = await inputs.pipeline.observations.observe(state.scope, cluster, cluster.without_read_tracking())
    state.scope = state.scope.with_names(cross=observed)


async def _run_external(inputs: ReconcileInputs, state: ReconcileState) -> None:
    ctx, pipeline = inputs.ctx, inputs.pipeline
    try:
        results = await pipeline.calls.run_calls(
            state.scope, inputs.caller, reader=ctx.cluster, namespace=ctx.owner_key.namespace
        )
    except CallError as error:
        # The status can show the results of the calls that succeeded.
        state.scope = state.scope.with_names(external=error.results)
        raise
    state.scope = state.scope.with_names(external=results)
    for name, period in pipeline.requeue_periods.items():
        if results[name]["called"]:
            state.request_requeue(period)


async def _run_for_each(inputs: ReconcileInputs, state: ReconcileState) -> None:
    ctx = inputs.ctx
    plan = state.results.plan = await inputs.pipeline.groups.plan(state.scope, ctx.owner, ctx.cluster, inputs.now)
    ctx.request_requeue(plan.requeue_at)
    for entry in (entry for group in plan.groups for entry in group.entries):
        if entry.is_foreign:
            report_kept_object(ctx, f"{entry.gvk.kind} {entry.key} does not belong to this object and is kept")


def report_kept_object(ctx: OwnerContext, message: str) -> None:
    """Record an event, once in the life of the process, that an object is not deleted because another one owns it."""
    report_once(ctx, "ResourceLeftAlone", message)


def report_once(ctx: OwnerContext, reason: str, message: str) -> None:
    """Record a Warning event about a deletion, once in the life of the process."""
    about = (reason, ctx.owner_uid, message)
    if ctx.events is not None and ctx.applied_cache.find_note(*about) is None:
        ctx.events.warning(ctx.owner, reason=reason, message=message, action="Delete")
        ctx.applied_cache.store_note(message, *about)


async def _run_on_create(inputs: ReconcileInputs, state: ReconcileState) -> None:
    count = len(inputs.pipeline.declared.on_create)
    await _reconcile_groups(inputs, state, range(min(count, inputs.pipeline.groups.first_after_providers)))


async def _run_on_reconcile(inputs: ReconcileInputs, state: ReconcileState) -> None:
    groups = inputs.pipeline.groups
    await _reconcile_groups(inputs, state, range(len(inputs.pipeline.declared.on_create), groups.first_after_providers))


async def _run_later_groups(inputs: ReconcileInputs, state: ReconcileState) -> None:
    """Reconcile the groups that read the results of providers, and those after them."""
    groups = inputs.pipeline.groups
    if groups.first_after_providers == len(groups.condition_types):
        return
    try:
        await _reconcile_groups(inputs, state, range(groups.first_after_providers, len(groups.condition_types)))
    finally:
        await _save_marks(inputs, state)


async def _reconcile_groups(inputs: ReconcileInputs, state: ReconcileState, places: range) -> None:
    ctx, adopts = inputs.ctx, inputs.pipeline.declared.reconcile.adopt
    for place in places:
        assert state.results.plan is not None, "forEach plans the groups"
        plan = state.results.plan = await inputs.pipeline.groups.complete_group(
            state.results.plan, place, state.scope, ctx.owner, ctx.cluster, ctx.secret_values, adopts=adopts
        )
        component = build_component(plan.groups[place], adopts=adopts)
        state.results.components.append(component)
        await component.reconcile(ctx)


async def _save_marks(inputs: ReconcileInputs, state: ReconcileState) -> None:
    """Record the objects that must be created only once on the owner, also after an error: some of them exist then."""
    ctx, plan = inputs.ctx, state.results.plan
    if plan is None:
        return
    marks = await plan_marks(plan, ctx.owner, ctx.cluster)
    if marks is None:
        return
    try:
        updated = await _write_marks(ctx, ctx.owner, marks)
    except ConflictError:
        live = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
        marks = await plan_marks(plan, live, ctx.cluster)
        if marks is not None:
            await _write_marks(ctx, live, marks)
        # The owner keeps the version that was read: a later conditional write of this reconcile must detect the change.
        return
    metadata = ctx.owner["metadata"]
    metadata["annotations"] = dict(updated["metadata"].get("annotations") or {})
    metadata["resourceVersion"] = updated["metadata"]["resourceVersion"]


async def _write_marks(ctx: OwnerContext, owner: Object, marks: list[str]) -> Object:
    """Write the marks to the owner in the version that was read; return the updated owner.

    Raises:
        ConflictError: The owner has changed since. An older list must not replace a newer one: its Jobs would run
            again.
    """
    metadata = owner["metadata"]
    # The UID protects a later object of the same name.
    same = {"uid": ctx.owner_uid, "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**same, "annotations": {CREATED: json.dumps(marks)}}}
    return await ctx.cluster.patch(ctx.owner_gvk, ctx.owner_key, body, patch_type="merge")


async def _run_providers(inputs: ReconcileInputs, state: ReconcileState) -> None:
    ctx, pipeline = inputs.ctx, inputs.pipeline
    if inputs.is_dry_run and pipeline.declared.providers:
        state.notes.append("providers are not called in a dry run")
        return
    dispatched = await pipeline.providers.reconcile(state.scope, ctx.owner, ctx.cluster, ctx.cluster)
    state.results.provider_result = dispatched
    state.scope = state.scope.with_names(providers=dispatched.results)
    state.request_requeue(dispatched.requeue_after)
    for condition in dispatched.conditions:
        ctx.stage(condition)
    if dispatched.status:
        _get_status(ctx.owner)[_PROVIDERS] = dispatched.status
    if dispatched.problems:
        raise StepError(pipeline.where, "; ".join(map(str, dispatched.problems)))


async def _update_status(inputs: ReconcileInputs, state: ReconcileState) -> None:
    """Set the declared status fields from the results so far, also after an error."""
    ctx, pipeline, plan = inputs.ctx, inputs.pipeline, state.results.plan
    if plan is not None:  # without a plan the desired children are unknown: fields that read them keep their values
        try:
            children = await pipeline.children.read(ctx.owner, plan.children, ctx.cluster, ctx.secret_values)
        except KonvergeError as error:
            state.notes.append(f"status: children cannot be read: {error}")
        else:
            state.scope = state.scope.with_names(children=children)
    state.results.status_without_fields = ctx.owner.get("status") or {}
    evaluated = pipeline.status_fields.evaluate_fields(state.scope, failed=state.failure is not None)
    ctx.owner["status"] = evaluated.apply_to_status(ctx.owner.get("status"))
    state.notes += [f"status: {problem}" for problem in evaluated.problems]


async def _report_conditions(inputs: ReconcileInputs, state: ReconcileState) -> None:
    """Stage the conditions of validation, and remove conditions that the box no longer reports."""
    ctx, pipeline, violations = inputs.ctx, inputs.pipeline, state.results.violations
    if violations is not None:
        for condition in build_validation_conditions(
            ctx.owner, violations, can_deny=pipeline.can_deny, can_warn=pipeline.can_warn
        ):
            ctx.stage(condition)
    stale = [] if pipeline.can_deny else [VALIDATION_FAILED]
    stale += [] if pipeline.can_warn else [VALIDATION_WARNING]
    ctx.retire_conditions(*stale, *await _find_stale_conditions(inputs, state))
    if ctx.owner_generation is not None:
        _get_status(ctx.owner)["observedGeneration"] = ctx.owner_generation


async def _find_stale_conditions(inputs: ReconcileInputs, state: ReconcileState) -> list[str]:
    """Find conditions of groups and providers that the file no longer has; delete an old `status.providers`.

    Only the server knows the writers of a condition. One read suffices: the results record the conditions of other
    writers.
    """
    ctx, provider_result = inputs.ctx, state.results.provider_result
    if state.failure is not None:
        return []
    declared = {READY, *inputs.pipeline.groups.condition_types}
    if provider_result is not None:
        declared |= {condition.type for condition in provider_result.conditions}
    foreign = inputs.foreign_conditions
    suspected = [kind for kind in find_suspect_types(ctx.owner, declared) if kind not in foreign]
    status = _get_status(ctx.owner)
    has_no_items = provider_result is not None and not provider_result.status
    lists_old_items = has_no_items and _PROVIDERS in status and _PROVIDERS not in foreign
    if not (suspected or lists_old_items):
        return []
    live = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
    stale = find_stale_types(live, suspected)
    new_foreign = {kind for kind in suspected if kind not in stale}
    if lists_old_items and is_stale_field(live, _PROVIDERS):
        del status[_PROVIDERS]
    elif lists_old_items:
        new_foreign.add(_PROVIDERS)
    state.results.foreign_conditions = frozenset(new_foreign)
    return stale


def _get_status(owner: Object) -> Object:
    status = owner.get("status")
    if not isinstance(status, dict):
        status = owner["status"] = {}
    return status


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step of a reconcile.

    Args:
        name: The name of the step in the box file, or its purpose.
        run: The function of the step.
        always: Tells whether the step runs also after an error.
    """

    name: str
    run: Callable[[ReconcileInputs, ReconcileState], Awaitable[None]]
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
    PipelineStep("laterGroups", _run_later_groups),
    PipelineStep("status", _update_status, always=True),
    PipelineStep("report", _report_conditions, always=True),
)
"""The steps of every reconcile, in their order."""
