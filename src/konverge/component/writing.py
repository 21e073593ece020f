"""What the engine does to one object: read, apply, delete, release. Each writes only what differs."""

from __future__ import annotations

import hashlib
import logging
from datetime import timedelta
from typing import NamedTuple

from konverge.apply import builtin_schema, differences, normalize
from konverge.apply.managers import applied_entry
from konverge.component import immutability
from konverge.component.composition import Composition, Entry
from konverge.component.context import ReconcileContext
from konverge.component.failure import failing
from konverge.component.immutability import is_immutability
from konverge.component.memory import Wish
from konverge.errors import ApiError, ConflictError, InvalidError, NotFoundError, ReconcileError, TerminalError
from konverge.kube import Object, controller_of, has_owner, is_deleting, owner_reference, without_owner
from konverge.primitives.lifecycle import Operation, Resource, handles_secret

__all__ = ["Written", "apply", "delete", "field_manager", "foreign_controller", "read", "release"]

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
_MANAGER_LIMIT = 128
_RELEASE_TRIES = 5
_RECREATE_AFTER = timedelta(seconds=1)


def field_manager(owner: Object, component: str) -> str:
    """``<OwnerKind>/<component>/<ownerUID>``, hashed when longer than the 128 characters that a manager may have.

    The UID keeps two owners that render one object from silently taking each other's fields.
    """
    manager = f"{owner['kind']}/{component}/{owner['metadata']['uid']}"
    return manager if len(manager) <= _MANAGER_LIMIT else hashlib.sha256(manager.encode()).hexdigest()


async def read(
    ctx: ReconcileContext, resource: Resource, *, failed: str = "failed to retrieve object for resource"
) -> Object | None:
    """The live object, None when there is none."""
    with failing(failed, resource.identity):
        try:
            return await ctx.client.get(resource.gvk, resource.key)
        except NotFoundError:
            return None


def foreign_controller(ctx: ReconcileContext, live: Object | None) -> str:
    """``controlled by <Kind> <name>`` when another owner controls the live object, else empty."""
    controller = None if live is None else controller_of(live)
    if controller is None or controller.get("uid") == ctx.owner_uid:
        return ""
    return f"controlled by {controller.get('kind')} {controller.get('name')}"


class Written(NamedTuple):
    """What an apply came to.

    Args:
        live: The live object afterwards; None when it was deleted, to be made anew in a later pass.
        operation: What was done to it, judged by the server's answer.
        waiting: Why there is no object.
    """

    live: Object | None
    operation: Operation
    waiting: str = ""


async def apply(
    ctx: ReconcileContext, component: Composition, entry: Entry, desired: Object, live: Object | None
) -> Written:
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
        return Written(None, Operation.NONE, f"{entry.identity} is being deleted, to be made anew")
    is_owned = await _claim(ctx, resource, desired, is_unowned=is_unowned)
    manager = field_manager(ctx.owner, component.name)
    schema = builtin_schema(resource.gvk)
    with failing("failed to apply resource", resource.identity):
        wish = Wish.of(desired, manager)
        if live is not None and not (is_unowned and has_owner(live, ctx.owner_uid)):
            if ctx.memory.is_settled(live, wish):
                return Written(live, Operation.NONE)
            found = differences(desired, live, manager, schema)
            if not found or ctx.memory.explains(live["metadata"]["uid"], wish, found):
                ctx.memory.settle(live, wish)
                return Written(live, Operation.NONE)
        try:
            # In the server's form, so that what we own is what is stored: a key applied as a Secret's stringData, for
            # one, would never be removed again.
            applied = await ctx.client.apply(normalize(desired, schema), field_manager=manager)
        except InvalidError as error:
            return await _refused(ctx, entry, error, desired, live, manager)
        except ApiError as error:
            raise _sparing(error, resource) from None
        answer = applied.object
        if is_unowned and has_owner(answer, ctx.owner_uid):
            # Another manager's: the component had another name once.
            answer = await _without_owner(ctx, resource) or answer
        ctx.memory.remember(answer["metadata"]["uid"], wish, differences(desired, answer, manager, schema))
        ctx.memory.settle(answer, wish)
    if applied.created:
        operation = Operation.CREATED
    elif live is None or _version(live) != _version(answer):
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
        _event(
            ctx,
            resource,
            reason=f"{operation.value}{kind}",
            message=f"{operation.value} {kind} '{resource.key.name}'",
            action=operation.value.removesuffix("d"),
            related=answer,
        )
    return Written(answer, operation)


async def _refused(
    ctx: ReconcileContext, entry: Entry, error: InvalidError, desired: Object, live: Object | None, manager: str
) -> Written:
    """What follows from a refusal for what the object says: it is made anew where that is declared, or it is an error.

    Raises:
        konverge.errors.KonvergeError: The refusal, in words that say what to do.
    """
    resource = entry.resource
    if other := foreign_controller(ctx, live):
        if entry.treatment.is_unowned:
            raise _sparing(error, resource) from None
        raise ReconcileError(
            f"it is {other}, and an object has one controller: {ctx.owner_gvk.kind} {ctx.owner_key.name} cannot be a "
            f"second one. Give one of the two another name, or declare unowned() or block_on_foreign_controller(). "
            f"The server says: {_sparing(error, resource).message}"
        ) from None
    if live is None or not is_immutability(error):
        raise _sparing(error, resource) from None
    told = immutability.told(error, desired, live, is_secret=handles_secret(resource))
    if not resource.recreates:
        raise TerminalError(f"{told}. Declare recreate=True on the primitive, or keep the old value") from error
    if applied_entry(live, manager) is None and not has_owner(live, ctx.owner_uid):
        raise TerminalError(f"{told}, and recreate=True removes only what this component has made") from error
    await ctx.client.delete(resource.gvk, resource.key, uid=live["metadata"]["uid"])
    _event(
        ctx,
        resource,
        reason="ResourceDeleted",
        message=f"Resource {entry.identity} deleted to be made anew: {told}",
        action="Delete",
        related=live,
    )
    # Where no watch wakes the owner, somebody has to.
    ctx.request_wake(ctx.clock.now() + _RECREATE_AFTER)
    return Written(None, Operation.NONE, f"{entry.identity} is made anew: {told}")


def _sparing(error: ApiError, resource: Resource) -> ApiError:
    """The refusal without the server's words where they may quote a Secret's value out of an object of another kind.

    Of a Secret itself the server quotes nothing.
    """
    if resource.gvk.is_secret or not handles_secret(resource):
        return error
    fields = ", ".join(dict.fromkeys(cause.field for cause in error.causes if cause.field))
    told = (
        f"the server refuses it ({error.code} {error.reason}{': ' if fields else ''}{fields}). "
        "Its words are not shown: they may repeat the value of a Secret"
    )
    return type(error)(told, reason=error.reason, code=error.code, retry_after_seconds=error.retry_after_seconds)


async def delete(ctx: ReconcileContext, entry: Entry, *, told: str) -> None:
    """Delete the object, if there is one that is not on its way out already.

    The request carries the UID of the object that was read: what has taken its name since is left alone (invariant 2).
    """
    identity, resource = entry.identity, entry.resource
    with failing("failed to delete resource", identity):
        try:
            live = await ctx.client.get(resource.gvk, resource.key)
            if is_deleting(live):
                return
            if entry.treatment.blocks_on_foreign_controller:
                if foreign_controller(ctx, live):
                    return
                # What is to be spared must not be deleted by an older copy of it.
                live = await ctx.client.get(resource.gvk, resource.key, live=True)
                if foreign_controller(ctx, live):
                    return
            await ctx.client.delete(resource.gvk, resource.key, uid=live["metadata"]["uid"])
        except NotFoundError:
            return
    _event(
        ctx, resource, reason="ResourceDeleted", message=f"Resource {identity} {told}", action="Delete", related=live
    )


async def release(ctx: ReconcileContext, resource: Resource) -> None:
    """Drop the owner's reference from the object and leave the rest of it as it is.

    A plain update, not an apply: applying the object without the fields would remove what the component once applied.
    """
    identity = resource.identity
    with failing("failed to orphan resource", identity):
        try:
            if not has_owner(await ctx.client.get(resource.gvk, resource.key), ctx.owner_uid):
                return
            live = await _without_owner(ctx, resource)
        except NotFoundError:
            return
    if live is None:
        return
    _event(
        ctx,
        resource,
        reason="ResourceOrphaned",
        message=f"Resource {identity} orphaned: owner reference removed",
        action="Orphan",
        related=live,
    )


async def _without_owner(ctx: ReconcileContext, resource: Resource) -> Object | None:
    tries = _RELEASE_TRIES
    while True:
        live = await ctx.client.get(resource.gvk, resource.key, live=True)
        if not without_owner(live, ctx.owner_uid):
            return None
        try:
            return await ctx.client.update(live)
        except ConflictError:
            tries -= 1
            if not tries:
                raise


async def _claim(ctx: ReconcileContext, resource: Resource, desired: Object, *, is_unowned: bool) -> bool:
    """Complete the desired object, in place: its type, no server-set metadata, and the owner's controller reference.

    A namespaced owner cannot own a cluster-scoped object; such an object gets no reference, and neither does one that
    is to have none. The answer tells whether it has one.
    """
    desired["apiVersion"], desired["kind"] = resource.gvk.api_version, resource.gvk.kind
    desired.pop("status", None)
    metadata = desired["metadata"]
    for name in _SERVER_SET:
        metadata.pop(name, None)
    with failing("failed to determine GVK for resource", resource.identity):
        owner_namespaced = (await ctx.client.mapping(ctx.owner_gvk)).namespaced
        namespaced = (await ctx.client.mapping(resource.gvk)).namespaced
    references = [found for found in metadata.get("ownerReferences") or () if found.get("uid") != ctx.owner_uid]
    if is_unowned or (owner_namespaced and not namespaced):
        if "ownerReferences" in metadata:
            metadata["ownerReferences"] = references
        return False
    if owner_namespaced and resource.key.namespace != ctx.owner_key.namespace:
        raise ReconcileError(
            f"failed to apply resource {resource.identity}: an owner in namespace {ctx.owner_key.namespace!r} cannot "
            f"own an object in namespace {resource.key.namespace!r}: the garbage collector would delete it. Declare "
            "unowned() to manage it without owning it"
        )
    metadata["ownerReferences"] = [*references, owner_reference(ctx.owner)]
    return True


def _version(obj: Object) -> str | None:
    version: str | None = obj["metadata"].get("resourceVersion")
    return version


def _event(
    ctx: ReconcileContext, resource: Resource, *, reason: str, message: str, action: str, related: Object
) -> None:
    if ctx.events is not None:
        with failing("failed to record an event about resource", resource.identity):
            ctx.events.event(ctx.owner, reason=reason, message=message, action=action, related=related)
