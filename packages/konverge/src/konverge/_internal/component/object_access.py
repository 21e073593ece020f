"""Reads of single objects and events about them, shared by all operations on objects."""

from __future__ import annotations

from konverge._internal.component.error_wrapping import withhold_secret_errors, wrap_errors
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Object
from konverge._internal.primitives.resource_protocol import Resource
from konverge.errors import KindNotServedError, KindUnreachableError, NotFoundError

__all__ = [
    "is_kind_not_served",
    "read_live",
    "read_object",
    "read_resource_version",
    "record_event",
    "record_warning",
]


async def read_object(
    ctx: ReconcileContext, resource: Resource, *, failed: str = "failed to retrieve object for resource"
) -> Object | None:
    """Return the live object; None if it does not exist.

    Args:
        ctx: The reconcile.
        resource: The resource.
        failed: The step that an error names.
    """
    with wrap_errors(failed, resource.identity):
        try:
            with withhold_secret_errors(resource):
                live = await ctx.client.get(resource.gvk, resource.key)
        except NotFoundError:
            return None
    ctx.secret_values.add(live)
    return live


async def read_live(ctx: ReconcileContext, resource: Resource) -> Object | None:
    """Read the object from the server instead of a cache; None if it does not exist."""
    try:
        return await ctx.client.get(resource.gvk, resource.key, live=True)
    except NotFoundError:
        return None


def is_kind_not_served(error: BaseException | None) -> bool:
    """Return True if the kind does not exist; False if the server cannot answer that now."""
    return isinstance(error, KindNotServedError) and not isinstance(error, KindUnreachableError)


def read_resource_version(obj: Object) -> str | None:
    """Return the object's resource version; None for an object that was not read from a server."""
    version: str | None = obj["metadata"].get("resourceVersion")
    return version


def record_event(
    ctx: ReconcileContext, resource: Resource, *, reason: str, message: str, action: str, related: Object
) -> None:
    """Record a Normal event on the owner, if the reconcile records events."""
    if ctx.events is not None:
        with wrap_errors("failed to record an event about resource", resource.identity):
            ctx.events.event(ctx.owner, reason=reason, message=message, action=action, related=related)


def record_warning(
    ctx: ReconcileContext, resource: Resource, *, reason: str, message: str, action: str, related: Object
) -> None:
    """Record a Warning event on the owner, if the reconcile records events."""
    if ctx.events is not None:
        with wrap_errors("failed to record an event about resource", resource.identity):
            ctx.events.warning(ctx.owner, reason=reason, message=message, action=action, related=related)
