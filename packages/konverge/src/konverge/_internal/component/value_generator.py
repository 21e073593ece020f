"""Values that are made once, in a reconcile: the reads before a decision, and the reports about it.

`konverge._internal.primitives.value_generation` decides; `konverge._internal.component.object_operations` writes. A
value is made only if the server itself, not a cache, shows that there is none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from konverge._internal.apply.managed_fields import find_apply_entry
from konverge._internal.component.adoption import describe_obstacle
from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.error_wrapping import withhold_secret_errors, wrap_errors
from konverge._internal.component.object_access import read_live, record_event, record_warning
from konverge._internal.component.ownership import build_field_manager, describe_foreign_controller
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Object, is_deleting
from konverge._internal.primitives.value_generation import ValueGeneration, ValuePlan

__all__ = ["PreparedValues", "prepare_values", "report_values"]

_log = logging.getLogger("konverge.component")

_FAILED = "failed to generate values of resource"


@dataclass(frozen=True, slots=True)
class PreparedValues:
    """The values of one object for this reconcile.

    Args:
        live: The object, from the server if values are made.
        plan: The decision.
        render: Returns the desired object with the values; None if the component waits.
        waiting: The reason why the component waits.
        changed: The keys whose values another client changed.
    """

    live: Object | None = field(repr=False)
    plan: ValuePlan
    render: Callable[[], Object] | None = field(default=None, repr=False)
    waiting: str = ""
    changed: tuple[str, ...] = ()


async def prepare_values(
    ctx: ReconcileContext,
    component: ComponentSpec,
    entry: RegisteredResource,
    generation: ValueGeneration,
    live: Object | None,
) -> PreparedValues:
    """Decide which values stay, and make the others.

    Args:
        ctx: The reconcile.
        component: The component of the resource.
        entry: The resource.
        generation: The part of the resource that makes values.
        live: The object as this reconcile read it, without an obstacle to an apply.

    Raises:
        konverge.errors.ReconcileError: A value cannot be made, or the server does not answer.
    """
    now = ctx.clock.now()
    with wrap_errors(_FAILED, entry.identity):
        plan = ctx.call(generation.plan_values, live, now)
        if plan.missing:
            # A decision on a stale copy could replace values that are in use.
            with withhold_secret_errors(entry.resource):
                live = await read_live(ctx, entry.resource)
            plan = ctx.call(generation.plan_values, live, now)
    if live is not None and plan.missing:
        live, obstacle = await describe_obstacle(ctx, component, entry, live)
        if obstacle:
            return PreparedValues(live, plan, waiting=obstacle)
    if live is not None:
        if controller := describe_foreign_controller(live, ctx.owner):
            # Its values go with its controller: no reader may get them.
            return PreparedValues(live, plan, waiting=f"waiting until {entry.identity}, {controller}, is gone")
        if is_deleting(live):
            return PreparedValues(live, plan, waiting=f"waiting until {entry.identity} is gone, which is being deleted")
    values, stamps = dict(plan.kept), plan.stamps
    with wrap_errors(_FAILED, entry.identity):
        if plan.missing:
            values |= ctx.call(generation.make_values, plan.missing, ctx.entropy, now)
            if not plan.kept:
                stamps = generation.stamp_values(live, now)
    manager = build_field_manager(ctx.owner, component.name)
    changed = () if live is None else tuple(_list_changed(live, manager, plan.kept))
    return PreparedValues(live, plan, partial(generation.render_values, values, stamps), changed=changed)


def _list_changed(live: Object, manager: str, keys: Iterable[str]) -> list[str]:
    """List the keys that the component applied and that another client changed since: it lost the fields."""
    entry = find_apply_entry(live, manager)
    if entry is None:
        return []
    owned = entry["fieldsV1"].get("f:data")
    return [key for key in keys if not (isinstance(owned, Mapping) and f"f:{key}" in owned)]


async def report_values(
    ctx: ReconcileContext,
    component: ComponentSpec,
    entry: RegisteredResource,
    generation: ValueGeneration,
    prepared: PreparedValues,
    live: Object,
) -> None:
    """Report the values that were made, changed by another client, or kept with another shape; plan their rotation.

    Args:
        ctx: The reconcile.
        component: The component of the resource.
        entry: The resource.
        generation: The part of the resource that makes values.
        prepared: The values.
        live: The object after the apply.
    """
    ctx.secret_values.add(live)
    plan, subject = prepared.plan, f"{entry.resource.gvk.kind} '{entry.resource.key.name}'"
    if plan.missing:
        keys = ", ".join(plan.missing)
        if plan.reason:
            _report(ctx, entry, live, "ValuesRotated", f"{subject}: new values of {keys}, because {plan.reason}")
        elif prepared.live is None and _was_ready(ctx, component):
            message = f"{subject} was deleted: new values of {keys}. Readers of the earlier values need the new ones"
            _log.warning("%s", message, extra=component.log_fields | {"resource": entry.identity})
            record_warning(ctx, entry.resource, reason="ValuesLost", message=message, action="Generate", related=live)
        else:
            _report(ctx, entry, live, "ValuesGenerated", f"{subject}: generated {keys}")
        with wrap_errors(_FAILED, entry.identity):
            plan = ctx.call(generation.plan_values, live, ctx.clock.now())
    if prepared.changed:
        message = f"{subject}: another client changed {', '.join(prepared.changed)}; the new value stays"
        _log.warning("%s", message, extra=component.log_fields | {"resource": entry.identity})
        record_warning(ctx, entry.resource, reason="ValuesChanged", message=message, action="Keep", related=live)
    for notice in plan.notices:
        about = ("values", ctx.owner_uid, str(live["metadata"].get("uid")), notice)
        if ctx.applied_cache.find_note(*about) is None:
            ctx.applied_cache.store_note("", *about)
            _report(ctx, entry, live, "ValuesKept", f"{subject}: {notice}")
    ctx.request_requeue(plan.due)


def _was_ready(ctx: ReconcileContext, component: ComponentSpec) -> bool:
    """Return True if the component was ready before, so that its objects existed."""
    condition = ctx.condition(component.condition_type)
    return condition is not None and condition.status == "True"


def _report(ctx: ReconcileContext, entry: RegisteredResource, live: Object, reason: str, message: str) -> None:
    record_event(ctx, entry.resource, reason=reason, message=message, action="Generate", related=live)
