"""Fields that an apply takes over from another writer: the check before the apply, and an event for each writer.

The event is the record of a rival between its writes (`diagnosis.takeover_events`).
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge._internal.apply import Difference
from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.diagnosis.takeover_events import TAKEN_OVER, TAKEN_OVER_FROM
from konverge._internal.component.object_access import read_live, record_event
from konverge._internal.component.ownership import describe_overruled, has_own_entry
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Object

__all__ = ["read_contested", "report_takeover"]


async def read_contested(
    ctx: ReconcileContext,
    component: ComponentSpec,
    entry: RegisteredResource,
    live: Object,
    drift: Sequence[Difference],
) -> Object | None:
    """Return the object with the fields of all managers if another one may have taken fields of the component.

    Another writer of a field takes its ownership. A change of the author leaves the ownership where it is, and costs no
    request here.

    Args:
        ctx: The reconcile.
        component: The component of the resource.
        entry: The resource.
        live: The object as this reconcile read it; caches keep only the managers that have applied.
        drift: The reasons to apply.
    """
    is_contested = any(difference.kind == "missing" and difference.live is not None for difference in drift)
    if ctx.events is None or not is_contested or not has_own_entry(live, ctx.owner, component.name):
        return None
    return await read_live(ctx, entry.resource)


def report_takeover(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, before: Object, response: Object
) -> None:
    """Record the managers that lost fields by an apply, with these fields; nothing if no manager lost any."""
    overruled = describe_overruled(before, response, ctx.owner, component.name)
    if not overruled:
        return
    record_event(
        ctx,
        entry.resource,
        reason=TAKEN_OVER,
        message=f"{entry.resource.gvk.kind} '{entry.resource.key.name}': {TAKEN_OVER_FROM}{overruled}",
        action="Update",
        related=response,
    )
