"""The steps of a pass, in their order, and what each does with what came before.

The table `ORDER` is the order. A step gets the `PassState` and adds to it; what its expressions may read is the scope,
into which only the steps before it have put something. The first error stops the steps after it, but for those that run
`always`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from konverge.box.calls import Caller, CallError
from konverge.box.providers import Dispatched
from konverge.box.running.conditions import (
    READY,
    VALIDATION_FAILED,
    VALIDATION_WARNING,
    is_stale_field,
    stale_types,
    suspected_types,
    validated,
)
from konverge.box.running.pipeline import Pipeline
from konverge.box.steps import Scope, StepError
from konverge.box.steps.components import component_of
from konverge.box.steps.labels import CREATED
from konverge.box.steps.marks import marks_after
from konverge.box.steps.planned import Plan
from konverge.box.steps.validation import BrokenRulesError, Violations, summary
from konverge.component import Component
from konverge.errors import ConflictError, KonvergeError
from konverge.kube import Condition, Object
from konverge.operator import OwnerContext

__all__ = ["ORDER", "DeniedError", "PassState", "Step", "tell_what_is_spared"]

_PROVIDERS = "providers"


class DeniedError(KonvergeError):
    """The custom resource breaks rules that deny it.

    Args:
        violations: All of them.
    """

    def __init__(self, violations: Violations) -> None:
        super().__init__(summary(violations.denied))
        self.violations = violations


@dataclass
class PassState:
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
        dispatched: What became of what providers keep; None before.
        strangers: Types of conditions, and a field of the status, that are known to be somebody else's.
        notes: What went wrong that stops nothing.
        status_without_fields: The status before the file's own fields were put on it; None before that.
        again_after: When to look again; None for no need.
    """

    pipeline: Pipeline
    ctx: OwnerContext
    scope: Scope
    object: Object
    caller: Caller
    now: datetime
    strangers: set[str]
    failure: Exception | None = None
    violations: Violations | None = None
    plan: Plan | None = None
    components: list[Component] = field(default_factory=list)
    dispatched: Dispatched | None = None
    notes: list[str] = field(default_factory=list)
    status_without_fields: Object | None = None
    again_after: timedelta | None = None

    def becomes(self, obj: Object) -> None:
        """The canonical object is another one: all later steps see its spec and metadata."""
        self.object = obj
        self.scope = self.scope.plus(metadata=obj.get("metadata", {}), spec=obj.get("spec", {}))

    def look_again(self, after: timedelta | None) -> None:
        """Ask for another pass after so long; the earliest wins."""
        if after is not None and (self.again_after is None or after < self.again_after):
            self.again_after = after

    @property
    def parts(self) -> list[tuple[str, Condition]]:
        """What Ready sums up."""
        owner = self.ctx.owner
        found = [(component.name, component.condition(owner)) for component in self.components]
        if self.dispatched is not None:
            found += [(condition.type.removesuffix("Ready"), condition) for condition in self.dispatched.conditions]
        return found


async def _normalize(state: PassState) -> None:
    state.becomes(state.pipeline.normalization.apply(state.scope, state.object))


async def _mutation(state: PassState) -> None:
    state.becomes(state.pipeline.mutations.apply(state.scope, state.object).object)


async def _validation(state: PassState) -> None:
    try:
        state.violations = state.pipeline.validation.check(state.scope)
    except BrokenRulesError as error:
        state.violations = error.violations
        raise
    if state.violations.denied:
        raise DeniedError(state.violations)


async def _cross(state: PassState) -> None:
    cluster = state.ctx.cluster
    found = await state.pipeline.observations.observe(state.scope, cluster, cluster.without_waking())
    state.scope = state.scope.plus(cross=found)


async def _external(state: PassState) -> None:
    namespace = state.ctx.owner_key.namespace
    try:
        found = await state.pipeline.calls.answer(
            state.scope, state.caller, reader=state.ctx.cluster, namespace=namespace
        )
    except CallError as error:
        # What was answered is still there to be shown.
        state.scope = state.scope.plus(external=error.results)
        raise
    state.scope = state.scope.plus(external=found)
    for name, kept_for in state.pipeline.kept_for.items():
        if found[name]["called"]:
            state.look_again(kept_for)


async def _for_each(state: PassState) -> None:
    ctx = state.ctx
    state.plan = await state.pipeline.groups.plan(state.scope, ctx.owner, ctx.cluster, state.now)
    ctx.request_wake(state.plan.wake_at)
    for entry in (entry for group in state.plan.groups for entry in group.entries):
        if entry.is_spared:
            tell_what_is_spared(ctx, f"{entry.gvk.kind} {entry.key} is not of this object, and stays")


def tell_what_is_spared(ctx: OwnerContext, told: str) -> None:
    """Say by an event, once in the life of the process, that an object is not deleted since it is another's."""
    about = ("left", ctx.owner_uid, told)
    if ctx.events is not None and ctx.memory.recall(*about) is None:
        ctx.events.warning(ctx.owner, reason="ResourceLeftAlone", message=told, action="Delete")
        ctx.memory.note(told, *about)


async def _on_create(state: PassState) -> None:
    await _reconcile(state, slice(len(state.pipeline.declared.on_create)))


async def _on_reconcile(state: PassState) -> None:
    await _reconcile(state, slice(len(state.pipeline.declared.on_create), None))


async def _reconcile(state: PassState, which: slice) -> None:
    assert state.plan is not None, "they are planned before"
    for group in state.plan.groups[which]:
        component = component_of(group, adopts=state.pipeline.declared.reconcile.adopt)
        state.components.append(component)
        await component.reconcile(state.ctx)


async def _marks(state: PassState) -> None:
    """Note what was made once. Also after an error: what is there is there."""
    if state.plan is None:
        return
    ctx = state.ctx
    marks = await marks_after(state.plan, ctx.owner, ctx.cluster)
    if marks is None:
        return
    try:
        answer = await _annotate(ctx, ctx.owner, marks)
    except ConflictError:
        live = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
        marks = await marks_after(state.plan, live, ctx.cluster)
        if marks is not None:
            await _annotate(ctx, live, marks)
        # The owner keeps the version in which it was read: who writes by it later in this pass must hear of the change.
        return
    metadata = ctx.owner["metadata"]
    metadata["annotations"] = dict(answer["metadata"].get("annotations") or {})
    metadata["resourceVersion"] = answer["metadata"]["resourceVersion"]


async def _annotate(ctx: OwnerContext, owner: Object, marks: list[str]) -> Object:
    """Write the marks of an owner as it was read.

    Raises:
        ConflictError: It has changed since: an older list must not replace a newer one, whose Jobs would run again.
    """
    metadata = owner["metadata"]
    # With the UID, a later object of that name is none the wiser.
    same = {"uid": ctx.owner_uid, "resourceVersion": metadata["resourceVersion"]}
    body = {"metadata": {**same, "annotations": {CREATED: json.dumps(marks)}}}
    return await ctx.cluster.patch(ctx.owner_gvk, ctx.owner_key, body, patch_type="merge")


async def _providers(state: PassState) -> None:
    ctx = state.ctx
    if ctx.observer is not None and state.pipeline.declared.providers:
        state.notes.append("what providers keep is not rehearsed")  # no dry run reaches them
        return
    dispatched = await state.pipeline.providers.reconcile(state.scope, ctx.owner, ctx.cluster, ctx.cluster)
    state.dispatched = dispatched
    state.scope = state.scope.plus(providers=dispatched.results)
    state.look_again(dispatched.again_after)
    for condition in dispatched.conditions:
        ctx.stage(condition)
    if dispatched.status:
        _status_of(ctx.owner)[_PROVIDERS] = dispatched.status
    if dispatched.problems:
        raise StepError(state.pipeline.where, "; ".join(map(str, dispatched.problems)))


async def _status(state: PassState) -> None:
    """The fields of the file's own, from everything that there is by now, also after an error."""
    ctx, pipeline = state.ctx, state.pipeline
    if state.plan is not None:  # without one nobody knows what there should be: fields that ask keep what they had
        try:
            children = await pipeline.children.read(ctx.owner, state.plan.children, ctx.cluster, ctx.secret_values)
        except KonvergeError as error:
            state.notes.append(f"status: children cannot be read: {error}")
        else:
            state.scope = state.scope.plus(children=children)
    state.status_without_fields = ctx.owner.get("status") or {}
    result = pipeline.status_fields.fields(state.scope, failed=state.failure is not None)
    ctx.owner["status"] = result.put_on(ctx.owner.get("status"))
    state.notes += [f"status: {problem}" for problem in result.problems]


async def _report(state: PassState) -> None:
    """What validation found, and conditions that nobody reports any more."""
    ctx, pipeline = state.ctx, state.pipeline
    violations = state.violations
    if violations is not None:
        for condition in validated(ctx.owner, violations, can_deny=pipeline.can_deny, can_warn=pipeline.can_warn):
            ctx.stage(condition)
    stale = [] if pipeline.can_deny else [VALIDATION_FAILED]
    stale += [] if pipeline.can_warn else [VALIDATION_WARNING]
    ctx.retire_conditions(*stale, *await _stale_conditions(state))
    if ctx.owner_generation is not None:
        _status_of(ctx.owner)["observedGeneration"] = ctx.owner_generation


async def _stale_conditions(state: PassState) -> list[str]:
    """Conditions of what the file had once; what it lists of providers goes at once.

    Who wrote one, only the server can say, and it is asked once.
    """
    ctx = state.ctx
    if state.failure is not None:
        return []
    declared = {READY, *state.pipeline.groups.condition_types}
    if state.dispatched is not None:
        declared |= {condition.type for condition in state.dispatched.conditions}
    suspected = [kind for kind in suspected_types(ctx.owner, declared) if kind not in state.strangers]
    status = _status_of(ctx.owner)
    has_none = state.dispatched is not None and not state.dispatched.status
    lists_old_items = has_none and _PROVIDERS in status and _PROVIDERS not in state.strangers
    if not (suspected or lists_old_items):
        return []
    live = await ctx.cluster.get(ctx.owner_gvk, ctx.owner_key, live=True)
    stale = stale_types(live, suspected)
    state.strangers.update(kind for kind in suspected if kind not in stale)
    if lists_old_items and is_stale_field(live, _PROVIDERS):
        del status[_PROVIDERS]
    elif lists_old_items:
        state.strangers.add(_PROVIDERS)
    return stale


def _status_of(owner: Object) -> Object:
    status = owner.get("status")
    if not isinstance(status, dict):
        status = owner["status"] = {}
    return status


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Args:
        name: As the file calls it, or what it is.
        run: Does it.
        always: Also after an error.
    """

    name: str
    run: Callable[[PassState], Awaitable[None]]
    always: bool = False


ORDER = (
    Step("normalize", _normalize),
    Step("mutation", _mutation),
    Step("validation", _validation),
    Step("cross", _cross),
    Step("external", _external),
    Step("forEach", _for_each),
    Step("onCreate", _on_create),
    Step("onReconcile", _on_reconcile),
    Step("marks", _marks, always=True),
    Step("providers", _providers),
    Step("status", _status, always=True),
    Step("report", _report, always=True),
)
"""The order of a pass."""
