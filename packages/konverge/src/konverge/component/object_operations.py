"""Operations of the engine on one object: apply, delete, release. Each writes only what differs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple

from konverge.apply import find_builtin_schema, find_drift, normalize
from konverge.component import immutable_fields
from konverge.component.adoption import describe_foreign_holder, read_for_adoption, report_adoption
from konverge.component.applied_cache import DesiredFingerprint
from konverge.component.component_spec import ComponentSpec, RegisteredResource
from konverge.component.error_wrapping import withhold_secret_errors, wrap_errors
from konverge.component.immutable_fields import is_immutability_error
from konverge.component.object_access import (
    is_kind_not_served,
    read_live,
    read_resource_version,
    record_event,
    record_warning,
)
from konverge.component.ownership import (
    build_field_manager,
    describe_foreign_controller,
    is_ours,
)
from konverge.component.reconcile_context import ReconcileContext
from konverge.errors import (
    ConflictError,
    InvalidError,
    KindNotServedError,
    NotFoundError,
    ReconcileError,
    TerminalError,
)
from konverge.kube import Object, build_owner_reference, has_owner, is_deleting, remove_owner
from konverge.primitives.resource_protocol import Operation, Resource, handles_secret

__all__ = [
    "ApplyOutcome",
    "apply_object",
    "delete_object",
    "release_object",
]

_log = logging.getLogger("konverge.component")

# What a server sets; an apply that carried any of it would claim it, or be refused.
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
    """What an apply came to.

    Args:
        live: The live object afterwards; None when it was deleted, to be made anew in a later pass.
        operation: What was done to it, judged by the server's answer.
        waiting_reason: Why there is no object.
    """

    live: Object | None
    operation: Operation
    waiting_reason: str = ""


async def apply_object(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, desired: Object, live: Object | None
) -> ApplyOutcome:
    """Make the live object what is desired, with a request only if something differs.

    Args:
        ctx: The pass.
        component: Whose resource it is.
        entry: The resource.
        desired: What it desires; completed in place.
        live: The object as it was read in this pass.
    """
    resource, is_unowned = entry.resource, entry.treatment.is_unowned
    if resource.recreates and live is not None and is_deleting(live):
        return ApplyOutcome(None, Operation.NONE, f"{entry.identity} is being deleted, to be made anew")
    before: Object | None = None
    is_owned = await _complete_desired(ctx, resource, desired, is_unowned=is_unowned)
    manager = build_field_manager(ctx.owner, component.name)
    schema = find_builtin_schema(resource.gvk)
    with wrap_errors("failed to apply resource", resource.identity), withhold_secret_errors(resource, desired):
        wish = DesiredFingerprint.of(desired, manager)
        if live is not None and not (is_unowned and has_owner(live, ctx.owner_uid)):
            if ctx.applied_cache.is_steady(live, wish):
                return ApplyOutcome(live, Operation.NONE)
            found = find_drift(desired, live, manager, schema)
            if not found or ctx.applied_cache.is_known_drift(live["metadata"]["uid"], wish, found, ctx.clock.now()):
                _mark_steady(ctx, live, wish)
                return ApplyOutcome(live, Operation.NONE)
            before = await read_for_adoption(ctx, component, entry, live)
        try:
            # In the server's form, so that what we own is what is stored: a key applied as a Secret's stringData, for
            # one, would never be removed again.
            with withhold_secret_errors(resource, desired):
                applied = await ctx.client.apply(normalize(desired, schema), field_manager=manager)
        except InvalidError as error:
            return await _handle_refusal(ctx, component, entry, error, desired, live)
        answer = applied.object
        about = ("applied", ctx.owner_uid, answer["metadata"]["uid"])
        if (before is not None or (live is None and not applied.created)) and ctx.applied_cache.find_note(
            *about
        ) is None:
            report_adoption(ctx, component, entry, before, answer)
            ctx.applied_cache.store_note("", *about)
        elif applied.created and not is_owned:
            # Who overwrites all that we apply takes our entry away, and there is no reference to know it by.
            ctx.applied_cache.store_note("", *about)
        if is_unowned and has_owner(answer, ctx.owner_uid):
            # Another manager's: the component had another name once.
            answer = await _remove_owner(ctx, resource) or answer
        left = find_drift(desired, answer, manager, schema)
        if ctx.applied_cache.record_drift(answer["metadata"]["uid"], wish, left, ctx.clock.now()):
            _report_override(ctx, component, resource, [each.path for each in left if each.is_override], answer)
        _mark_steady(ctx, answer, wish)
    if applied.created:
        operation = Operation.CREATED
    elif live is None or read_resource_version(live) != read_resource_version(answer):
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
            related=answer,
        )
    return ApplyOutcome(answer, operation)


def _mark_steady(ctx: ReconcileContext, live: Object, fingerprint: DesiredFingerprint) -> None:
    """Note that the object is as far as it gets; where somebody overrides it, come again to see whether it still is."""
    again_at = ctx.applied_cache.find_retry_time(live["metadata"]["uid"], fingerprint)
    if again_at is None:
        ctx.applied_cache.mark_steady(live, fingerprint)
    ctx.request_requeue(again_at)


def _report_override(
    ctx: ReconcileContext, component: ComponentSpec, resource: Resource, paths: Sequence[str], answer: Object
) -> None:
    """Say, once, that what was applied is stored with other values; they may be a Secret's and are not named."""
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS else ""
    message = (
        f"{resource.gvk.kind} '{resource.key.name}' is stored with other values than component {component.name} "
        f"applies, in {', '.join(paths[:_MAX_PATHS])}{more}: a mutating webhook or policy of the cluster overrides "
        "them. They are applied again from time to time, at intervals that grow to half an hour"
    )
    if ctx.observer is not None:
        ctx.observer.on_overridden(resource.identity, message)
    _log.warning("%s", message, extra=component.log_fields | {"resource": resource.identity})
    record_warning(ctx, resource, reason="ResourceOverridden", message=message, action="Update", related=answer)


async def _handle_refusal(
    ctx: ReconcileContext,
    component: ComponentSpec,
    entry: RegisteredResource,
    error: InvalidError,
    desired: Object,
    live: Object | None,
) -> ApplyOutcome:
    """What follows from a refusal for what the object says: it is made anew where that is declared, or it is an error.

    Raises:
        konverge.errors.KonvergeError: The refusal, in words that say what to do.
    """
    resource = entry.resource
    if other := describe_foreign_controller(live, ctx.owner):
        if entry.treatment.is_unowned:
            raise error
        raise ReconcileError(
            f"it is {other}, and an object has one controller: {ctx.owner_gvk.kind} {ctx.owner_key.name} cannot be a "
            f"second one. Give one of the two another name, or declare unowned() or block_on_foreign_controller(). "
            f"The server says: {error.message}"
        ) from None
    if live is None or not is_immutability_error(error):
        raise error
    told = immutable_fields.describe_immutable_change(
        error, desired, live, ctx.secret_values, is_secret=handles_secret(resource)
    )
    if not resource.recreates:
        raise TerminalError(f"{told}. Declare recreate=True on the primitive, or keep the old value") from error
    found = await read_live(ctx, resource)
    if found is not None and not is_ours(found, ctx.owner, component.name):
        raise TerminalError(f"{told}, and recreate=True removes only what this component has made") from error
    await ctx.client.delete(resource.gvk, resource.key, uid=live["metadata"]["uid"])
    record_event(
        ctx,
        resource,
        reason="ResourceDeleted",
        message=f"Resource {entry.identity} deleted to be made anew: {told}",
        action="Delete",
        related=live,
    )
    # Where no watch wakes the owner, somebody has to.
    ctx.request_requeue(ctx.clock.now() + _RECREATE_AFTER)
    return ApplyOutcome(None, Operation.NONE, f"{entry.identity} is made anew: {told}")


async def delete_object(
    ctx: ReconcileContext, component: ComponentSpec, entry: RegisteredResource, *, message: str
) -> None:
    """Delete the object if it is ours, and if there is one that is not on its way out already.

    The request carries the UID of the object that was read: what has taken its name since is left alone (invariant 2).
    What is not ours counts as gone (invariant 9). Of a kind that is not served there is nothing to delete.
    """
    identity, resource = entry.identity, entry.resource
    with wrap_errors("failed to delete resource", identity), withhold_secret_errors(resource):
        try:
            live = await ctx.client.get(resource.gvk, resource.key)
            if is_deleting(live):
                return
            if await describe_foreign_holder(ctx, component, entry, live):
                return
            await ctx.client.delete(resource.gvk, resource.key, uid=live["metadata"]["uid"])
        except NotFoundError:
            return
        except KindNotServedError as error:
            if not is_kind_not_served(error):
                raise
            return
    record_event(
        ctx, resource, reason="ResourceDeleted", message=f"Resource {identity} {message}", action="Delete", related=live
    )


async def release_object(ctx: ReconcileContext, resource: Resource) -> None:
    """Drop the owner's reference from the object and leave the rest of it as it is.

    A plain update, not an apply: applying the object without the fields would remove what the component once applied.
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
    """Complete the desired object, in place: its type, no server-set metadata, and the owner's controller reference.

    A namespaced owner cannot own a cluster-scoped object; such an object gets no reference, and neither does one that
    is to have none. The answer tells whether it has one.
    """
    desired["apiVersion"], desired["kind"] = resource.gvk.api_version, resource.gvk.kind
    desired.pop("status", None)
    metadata = desired["metadata"]
    for name in _SERVER_SET:
        metadata.pop(name, None)
    with wrap_errors("failed to determine GVK for resource", resource.identity):
        owner_namespaced = (await ctx.client.mapping(ctx.owner_gvk)).namespaced
        namespaced = (await ctx.client.mapping(resource.gvk)).namespaced
    references = [found for found in metadata.get("ownerReferences") or () if found.get("uid") != ctx.owner_uid]
    if is_unowned or (owner_namespaced and not namespaced):
        if "ownerReferences" in metadata:
            metadata["ownerReferences"] = references
        if not _has_fields(desired):
            # Of who applies a name alone the server keeps no record: nothing would tell that the object is ours.
            metadata["annotations"] = {_APPLIED_FOR: ctx.owner_uid}
        return False
    if owner_namespaced and resource.key.namespace != ctx.owner_key.namespace:
        raise ReconcileError(
            f"failed to apply resource {resource.identity}: an owner in namespace {ctx.owner_key.namespace!r} cannot "
            f"own an object in namespace {resource.key.namespace!r}: the garbage collector would delete it. Declare "
            "unowned() to manage it without owning it"
        )
    metadata["ownerReferences"] = [*references, build_owner_reference(ctx.owner)]
    return True


def _has_fields(desired: Object) -> bool:
    metadata = (value for name, value in desired["metadata"].items() if name not in ("name", "namespace"))
    return any(metadata) or not desired.keys() <= {"apiVersion", "kind", "metadata"}
