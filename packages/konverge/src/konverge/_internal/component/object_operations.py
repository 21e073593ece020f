"""Operations of the engine on one object: apply, delete, release. Each writes only what differs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from konverge._internal.apply import find_builtin_schema, find_drift, normalize
from konverge._internal.component import immutable_fields
from konverge._internal.component.adoption import describe_foreign_holder, read_for_adoption, report_adoption
from konverge._internal.component.applied_cache import DesiredFingerprint
from konverge._internal.component.component_spec import ComponentSpec, RegisteredResource
from konverge._internal.component.error_wrapping import withhold_secret_errors, wrap_errors
from konverge._internal.component.field_takeovers import read_contested, report_takeover
from konverge._internal.component.guarded_apply import guard_apply
from konverge._internal.component.immutable_fields import is_immutability_error
from konverge._internal.component.object_access import (
    is_kind_not_served,
    read_live,
    read_resource_version,
    record_event,
    record_warning,
)
from konverge._internal.component.ownership import (
    build_field_manager,
    describe_foreign_controller,
    is_ours,
)
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.kube import Object, build_owner_reference, has_owner, is_deleting, remove_owner
from konverge._internal.primitives.resource_protocol import Operation, Resource, handles_secret
from konverge.errors import (
    ConflictError,
    InvalidError,
    KindNotServedError,
    NotFoundError,
    ReconcileError,
    TerminalError,
)

__all__ = [
    "ApplyOutcome",
    "DeletionOutcome",
    "apply_object",
    "delete_object",
    "release_object",
]

_log = logging.getLogger("konverge.component")

# Fields that the server sets; an apply with one of them would claim it, or be refused.
_SERVER_SET = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_APPLIED_FOR = "konverge.dev/applied-for"
_MAX_PATHS = 5
_RELEASE_TRIES = 5
_RECREATE_AFTER = timedelta(seconds=1)


class ApplyOutcome(NamedTuple):
    """The result of an apply.

    Args:
        live: The live object afterwards; None if it was deleted, so that a later reconcile creates it again.
        operation: The operation on the object, according to the server's response.
        waiting_reason: The reason why there is no object.
    """

    live: Object | None
    operation: Operation
    waiting_reason: str = ""


class DeletionOutcome(NamedTuple):
    """The result of a deletion.

    Args:
        remaining: The object while it still exists; None if it is gone or does not belong to the component.
        is_requested: True if this reconcile sent the request.
    """

    remaining: Object | None
    is_requested: bool = False


async def apply_object(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, desired: Object, live: Object | None
) -> ApplyOutcome:
    """Apply the desired object, with a request only if the live object differs.

    Args:
        ctx: The reconcile.
        component: The component of the resource.
        entry: The resource.
        desired: The desired object; it is completed in place.
        live: The object as this reconcile read it.
    """
    resource, is_unowned = entry.resource, entry.treatment.is_unowned
    if resource.recreates and live is not None and is_deleting(live):
        return ApplyOutcome(None, Operation.NONE, f"{entry.identity} is being deleted, to be created again")
    before: Object | None = None
    contested: Object | None = None
    is_owned = await _complete_desired(ctx, resource, desired, is_unowned=is_unowned)
    manager = build_field_manager(ctx.owner, component.name)
    schema = find_builtin_schema(resource.gvk)
    with wrap_errors("failed to apply resource", resource.identity), withhold_secret_errors(resource, desired):
        fingerprint = DesiredFingerprint.of(desired, manager)
        if live is not None and not (is_unowned and has_owner(live, ctx.owner_uid)):
            if ctx.applied_cache.is_steady(live, fingerprint):
                return ApplyOutcome(live, Operation.NONE)
            drift = find_drift(desired, live, manager, schema)
            if not drift or ctx.applied_cache.is_known_drift(
                live["metadata"]["uid"], fingerprint, drift, ctx.clock.now()
            ):
                _mark_steady(ctx, live, fingerprint)
                return ApplyOutcome(live, Operation.NONE)
            before = await read_for_adoption(ctx, component, entry, live)
            contested = await read_contested(ctx, component, entry, live, drift)
        try:
            # In the server's form, so that the field manager owns the stored fields: for example, a key that was
            # applied as a Secret's stringData would never be removed again.
            with withhold_secret_errors(resource, desired):
                sent = normalize(desired, schema)
                if resource.guards_values:
                    sent = guard_apply(sent, live, resource.decided_on)
                applied = await ctx.client.apply(sent, field_manager=manager)
        except InvalidError as error:
            return await _handle_refusal(ctx, component, entry, error, desired, live)
        except ConflictError:
            if not resource.guards_values:
                raise
            ctx.request_requeue(ctx.clock.now() + _RECREATE_AFTER)
            return ApplyOutcome(None, Operation.NONE, f"{entry.identity} changed meanwhile, and is read again")
        response = applied.object
        about = ("applied", ctx.owner_uid, response["metadata"]["uid"])
        if (before is not None or (live is None and not applied.created)) and ctx.applied_cache.find_note(
            *about
        ) is None:
            report_adoption(ctx, component, entry, before, response)
            ctx.applied_cache.store_note("", *about)
        elif applied.created and not is_owned:
            # A client that overwrites all applied fields removes our managedFields entry, and without an owner
            # reference nothing else identifies the object.
            ctx.applied_cache.store_note("", *about)
        elif contested is not None:
            report_takeover(ctx, component, entry, contested, response)
        if is_unowned and has_owner(response, ctx.owner_uid):
            # From another field manager: the component had another name before.
            response = await _remove_owner(ctx, resource) or response
        left = find_drift(desired, response, manager, schema)
        if ctx.applied_cache.record_drift(response["metadata"]["uid"], fingerprint, left, ctx.clock.now()):
            _report_override(ctx, component, resource, [field.path for field in left if field.is_override], response)
        _mark_steady(ctx, response, fingerprint)
    if applied.created:
        operation = Operation.CREATED
    elif live is None or read_resource_version(live) != read_resource_version(response):
        operation = Operation.UPDATED
    else:
        operation = Operation.NONE
    if operation is not Operation.NONE:
        if not (is_owned or is_unowned):
            _log.info(
                "%s is cluster-scoped and gets no reference to its namespaced owner",
                resource.identity,
                extra=component.log_fields,
            )
        kind = resource.gvk.kind
        record_event(
            ctx,
            resource,
            reason=f"{operation.value}{kind}",
            message=f"{operation.value} {kind} '{resource.key.name}'",
            action=operation.value.removesuffix("d"),
            related=response,
        )
    return ApplyOutcome(response, operation)


def _mark_steady(ctx: ReconcileContext, live: Object, fingerprint: DesiredFingerprint) -> None:
    """Note that the object is steady; if the cluster overrides it, request a requeue for the next apply."""
    again_at = ctx.applied_cache.find_retry_time(live["metadata"]["uid"], fingerprint)
    if again_at is None:
        ctx.applied_cache.mark_steady(live, fingerprint)
    ctx.request_requeue(again_at)


def _report_override(
    ctx: ReconcileContext, component: ComponentSpec, resource: Resource, paths: Sequence[str], response: Object
) -> None:
    """Report once that the server stores other values than applied; values can be a Secret's and are not shown."""
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS else ""
    message = (
        f"{resource.gvk.kind} '{resource.key.name}' is stored with other values than component {component.name} "
        f"applies, in {', '.join(paths[:_MAX_PATHS])}{more}: a mutating webhook or policy of the cluster overrides "
        "them. konverge applies them again at intervals that grow to 30 minutes"
    )
    if ctx.observer is not None:
        ctx.observer.on_overridden(resource.identity, message)
    _log.warning("%s", message, extra=component.log_fields | {"resource": resource.identity})
    record_warning(ctx, resource, reason="ResourceOverridden", message=message, action="Update", related=response)


async def _handle_refusal(
    ctx: ReconcileContext,
    component: ComponentSpec,
    entry: RegisteredResource,
    error: InvalidError,
    desired: Object,
    live: Object | None,
) -> ApplyOutcome:
    """Delete the object if its resource declares that it can be created again; otherwise raise the refusal.

    Raises:
        konverge.errors.KonvergeError: The server refused the object; the message explains the fix.
    """
    resource = entry.resource
    if other := describe_foreign_controller(live, ctx.owner):
        if entry.treatment.is_unowned:
            raise error
        raise ReconcileError(
            f"it is {other}, and an object has one controller: {ctx.owner_gvk.kind} {ctx.owner_key.name} cannot be a "
            f"second one. Give one of the two another name, or {ctx.remedies.second_controller}. "
            f"The server reports: {error.message}"
        ) from None
    if live is None or not is_immutability_error(error):
        raise error
    change = immutable_fields.describe_immutable_change(
        error, desired, live, ctx.secret_values, is_secret=handles_secret(resource)
    )
    if not resource.recreates:
        raise TerminalError(f"{change}. {ctx.remedies.immutable}") from error
    current = await read_live(ctx, resource)
    if current is not None and not is_ours(current, ctx.owner, component.name):
        raise TerminalError(f"{change}, and only an object of this component is created again") from error
    await ctx.client.delete(resource.gvk, resource.key, uid=live["metadata"]["uid"])
    record_event(
        ctx,
        resource,
        reason="ResourceDeleted",
        message=f"Resource {entry.identity} deleted to be created again: {change}",
        action="Delete",
        related=live,
    )
    # For an object without a watch: no event would requeue the owner.
    ctx.request_requeue(ctx.clock.now() + _RECREATE_AFTER)
    return ApplyOutcome(None, Operation.NONE, f"{entry.identity} is created again: {change}")


async def delete_object(
    ctx: ReconcileContext,
    component: ComponentSpec,
    entry: RegisteredResource,
    *,
    message: str,
    propagation: Literal["Background", "Foreground"] = "Background",
) -> DeletionOutcome:
    """Delete the object if it belongs to the component and is not being deleted already.

    The request names the UID of the object that was read, so that a later object with the same name stays (invariant
    2). An object that does not belong to the component counts as gone (invariant 9), and so does a kind that is not
    served.
    """
    identity, resource = entry.identity, entry.resource
    with wrap_errors("failed to delete resource", identity), withhold_secret_errors(resource):
        try:
            live = await ctx.client.get(resource.gvk, resource.key)
            if is_deleting(live):
                belongs = entry.treatment.deletes_even_if_not_ours or is_ours(live, ctx.owner, component.name)
                return DeletionOutcome(live if belongs else None)
            if await describe_foreign_holder(ctx, component, entry, live):
                return DeletionOutcome(None)
            remaining = await ctx.client.delete(
                resource.gvk, resource.key, uid=live["metadata"]["uid"], propagation=propagation
            )
        except NotFoundError:
            return DeletionOutcome(None)
        except KindNotServedError as error:
            if not is_kind_not_served(error):
                raise
            return DeletionOutcome(None)
    record_event(
        ctx, resource, reason="ResourceDeleted", message=f"Resource {identity} {message}", action="Delete", related=live
    )
    return DeletionOutcome(remaining, is_requested=True)


async def release_object(ctx: ReconcileContext, resource: Resource) -> None:
    """Remove the owner's reference from the object and keep the rest of it.

    This is an update, not an apply: an apply without the fields would remove what the component applied before.
    """
    identity = resource.identity
    with wrap_errors("failed to orphan resource", identity), withhold_secret_errors(resource):
        try:
            if not has_owner(await ctx.client.get(resource.gvk, resource.key), ctx.owner_uid):
                return
            live = await _remove_owner(ctx, resource)
        except NotFoundError:
            return
        except KindNotServedError as error:
            if not is_kind_not_served(error):
                raise
            return
    if live is None:
        return
    record_event(
        ctx,
        resource,
        reason="ResourceOrphaned",
        message=f"Resource {identity} orphaned: owner reference removed",
        action="Orphan",
        related=live,
    )


async def _remove_owner(ctx: ReconcileContext, resource: Resource) -> Object | None:
    tries = _RELEASE_TRIES
    while True:
        live = await ctx.client.get(resource.gvk, resource.key, live=True)
        if not remove_owner(live, ctx.owner_uid):
            return None
        try:
            return await ctx.client.update(live)
        except ConflictError:
            tries -= 1
            if not tries:
                raise


async def _complete_desired(ctx: ReconcileContext, resource: Resource, desired: Object, *, is_unowned: bool) -> bool:
    """Complete the desired object in place; return True if it has the owner's controller reference.

    It gets its kind and the reference, and loses the metadata that the server sets. A namespaced owner cannot own a
    cluster-scoped object; such an object gets no reference, and neither does an unowned one.
    """
    desired["apiVersion"], desired["kind"] = resource.gvk.api_version, resource.gvk.kind
    desired.pop("status", None)
    metadata = desired["metadata"]
    for name in _SERVER_SET:
        metadata.pop(name, None)
    with wrap_errors("failed to determine GVK for resource", resource.identity):
        owner_namespaced = (await ctx.client.mapping(ctx.owner_gvk)).namespaced
        namespaced = (await ctx.client.mapping(resource.gvk)).namespaced
    references = [
        reference for reference in metadata.get("ownerReferences") or () if reference.get("uid") != ctx.owner_uid
    ]
    if is_unowned or (owner_namespaced and not namespaced):
        if "ownerReferences" in metadata:
            metadata["ownerReferences"] = references
        if not _has_fields(desired):
            # The server keeps no managedFields entry for an apply of only a name: nothing would identify the object.
            metadata["annotations"] = {_APPLIED_FOR: ctx.owner_uid}
        return False
    if owner_namespaced and resource.key.namespace != ctx.owner_key.namespace:
        raise ReconcileError(
            f"failed to apply resource {resource.identity}: an owner in namespace {ctx.owner_key.namespace!r} cannot "
            f"own an object in namespace {resource.key.namespace!r}: the garbage collector would delete it. "
            f"{ctx.remedies.other_namespace}"
        )
    metadata["ownerReferences"] = [*references, build_owner_reference(ctx.owner)]
    return True


def _has_fields(desired: Object) -> bool:
    metadata = (value for name, value in desired["metadata"].items() if name not in ("name", "namespace"))
    return any(metadata) or not desired.keys() <= {"apiVersion", "kind", "metadata"}
