"""Adoption of objects that exist already: the checks before an apply or a delete, and the reports.

An object is the component's if the owner controls it or, without a controller, if the component has applied it
(`component.ownership`). Any other object is adopted with a report, or left as it is.
"""

from __future__ import annotations

import logging

from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.error_wrapping import withhold_secret_errors, wrap_errors
from konverge._internal.component.object_access import read_live, read_resource_version, record_warning
from konverge._internal.component.ownership import (
    describe_foreign_controller,
    describe_holder,
    describe_overruled,
    has_own_entry,
    is_ours,
)
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Object
from konverge.errors import NotFoundError

__all__ = [
    "describe_foreign_holder",
    "describe_obstacle",
    "leave_if_not_ours",
    "read_for_adoption",
    "report_adoption",
]

_log = logging.getLogger("konverge.component")


async def describe_obstacle(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, live: Object | None
) -> tuple[Object | None, str]:
    """Describe why the component must not apply its object; empty if it may.

    Args:
        ctx: The reconcile.
        component: The component of the resource.
        entry: The resource.
        live: The object as this reconcile read it.

    Returns:
        The object and the reason. The object is read again from the server where the cached one is not enough.
    """
    # The values of another client's Secret must not pass for values that were made for this owner.
    makes_values = entry.resource.generation is not None
    refuses_adoption = entry.treatment.refuses_adoption(by_default=makes_values or not ctx.adopt)
    if (refuses_adoption or entry.treatment.blocks_on_foreign_controller) and (
        controller := describe_foreign_controller(live, ctx.owner)
    ):
        return live, controller
    if not refuses_adoption:
        return live, ""
    if live is not None and _was_applied_before(ctx, component, live):
        return live, ""
    cached = live
    if cached is not None and (
        noted := ctx.applied_cache.find_note("obstacle", ctx.owner_uid, *_read_uid_and_version(cached))
    ):
        return live, noted
    # A decision on a stale copy could overwrite the object, and caches do not keep all field managers.
    with wrap_errors("failed to check existence of resource", entry.identity), withhold_secret_errors(entry.resource):
        live = await read_live(ctx, entry.resource)
    if live is None or _was_applied_before(ctx, component, live):
        return live, ""
    reason = (
        f"{entry.identity} exists already, {describe_holder(live, ctx.owner, component.name)}, and adoption is "
        "refused. Delete it, give one of the two another name, or allow its adoption"
    )
    ctx.applied_cache.store_note(reason, "obstacle", ctx.owner_uid, *_read_uid_and_version(cached or live))
    return live, reason


def _was_applied_before(ctx: ReconcileContext, component: ComponentSpec, live: Object) -> bool:
    """Return True if the object is the component's, or if the component has an entry in its managedFields."""
    return is_ours(live, ctx.owner, component.name) or has_own_entry(live, ctx.owner, component.name)


async def read_for_adoption(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, live: Object
) -> Object | None:
    """Return the object with the fields of all managers if an apply would adopt it; None if it would not.

    An object that the component has applied before is not adopted again. An object that another owner controls cannot
    be adopted: the server refuses a second controller.
    """
    if _was_applied_before(ctx, component, live):
        return None
    if describe_foreign_controller(live, ctx.owner) and not entry.treatment.is_unowned:
        return None
    current = await read_live(ctx, entry.resource)
    return None if current is None or _was_applied_before(ctx, component, current) else current


def report_adoption(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, before: Object | None, response: Object
) -> None:
    """Report once that the component adopted an existing object, with the managers and fields that it overruled."""
    kind = entry.resource.gvk.kind
    message = f"{kind} '{entry.resource.key.name}' existed already and is adopted by component {component.name}"
    if before is None:
        message += ". It appeared during the reconcile: the fields that were overruled are not known"
    else:
        overruled = describe_overruled(before, response, ctx.owner, component.name) or "no fields"
        message += f"; it was {describe_holder(before, ctx.owner, component.name)}. Overruled: {overruled}"
    if ctx.observer is not None:
        ctx.observer.on_adopted(entry.identity, message)
    _log.warning("%s", message, extra=component.log_fields | {"resource": entry.identity})
    record_warning(ctx, entry.resource, reason="ResourceAdopted", message=message, action="Adopt", related=response)


async def leave_if_not_ours(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, live: Object
) -> str:
    """Describe why an object that is marked for deletion stays; empty if it may be deleted."""
    with wrap_errors("failed to delete resource", entry.identity), withhold_secret_errors(entry.resource):
        try:
            return await describe_foreign_holder(ctx, component, entry, live)
        except NotFoundError:
            return ""


async def describe_foreign_holder(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, live: Object
) -> str:
    """Describe who has the object, and report it once; empty if the component may delete it.

    Raises:
        konverge.errors.NotFoundError: The object is gone.
    """
    resource = entry.resource
    if entry.treatment.deletes_even_if_not_ours:
        return ""
    if is_ours(live, ctx.owner, component.name):
        # A stale copy could show an owner that the object no longer has.
        live = await ctx.client.get(resource.gvk, resource.key, live=True)
        if is_ours(live, ctx.owner, component.name):
            return ""
    # One event for each holder, not one for each reconcile.
    about = ("left", ctx.owner_uid, live["metadata"]["uid"], describe_foreign_controller(live, ctx.owner))
    message = ctx.applied_cache.find_note(*about)
    if message is None:
        # Caches keep only the field managers that have applied.
        live = await ctx.client.get(resource.gvk, resource.key, live=True)
        message = (
            f"Resource {entry.identity} is not deleted: it is {describe_holder(live, ctx.owner, component.name)}, and "
            "not this object's. To delete it all the same, declare even_if_not_ours=True"
        )
        record_warning(ctx, resource, reason="ResourceLeftAlone", message=message, action="Delete", related=live)
        ctx.applied_cache.store_note(message, *about)
    if ctx.observer is not None:
        ctx.observer.on_left_alone(entry.identity, message)
    return message


def _read_uid_and_version(live: Object) -> tuple[str, str]:
    return live["metadata"].get("uid") or "", read_resource_version(live) or ""
