"""What the engine does to one object: read, apply, delete, release. Each writes only what differs."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from konverge.apply import builtin_schema, differences, normalize
from konverge.component.failure import failing
from konverge.component.memory import Wish
from konverge.errors import ConflictError, NotFoundError, ReconcileError
from konverge.kube import Object, has_owner, is_deleting, owner_reference, without_owner
from konverge.primitives.lifecycle import Operation, Resource

if TYPE_CHECKING:
    from konverge.component.context import ReconcileContext

__all__ = ["apply", "delete", "field_manager", "read", "release"]

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


def field_manager(owner: Object, component: str) -> str:
    """``<OwnerKind>/<component>/<ownerUID>``, hashed when longer than the 128 characters that a manager may have.

    The UID keeps two owners that render one object from silently taking each other's fields.
    """
    manager = f"{owner['kind']}/{component}/{owner['metadata']['uid']}"
    return manager if len(manager) <= _MANAGER_LIMIT else hashlib.sha256(manager.encode()).hexdigest()


async def read(ctx: ReconcileContext, resource: Resource) -> Object | None:
    """The live object, None when there is none."""
    with failing("failed to retrieve object for resource", resource.identity):
        try:
            return await ctx.client.get(resource.gvk, resource.key)
        except NotFoundError:
            return None


async def apply(
    ctx: ReconcileContext, component: str, resource: Resource, *, suspended: bool = False
) -> tuple[Object, Operation]:
    """Make the live object what the resource desires, with a request only if something differs.

    Returns:
        The live object afterwards, and what was done to it, judged by the server's answer.
    """
    live = await read(ctx, resource)
    with failing("failed to mutate resource", resource.identity):
        desired = resource.desired(suspended=suspended)
    is_owned = await _claim(ctx, resource, desired)
    manager = field_manager(ctx.owner, component)
    schema = builtin_schema(resource.gvk)
    with failing("failed to apply resource", resource.identity):
        wish = Wish.of(desired, manager)
        if live is not None:
            if ctx.memory.is_settled(live, wish):
                return live, Operation.NONE
            found = differences(desired, live, manager, schema)
            if not found or ctx.memory.explains(live["metadata"]["uid"], wish, found):
                ctx.memory.settle(live, wish)
                return live, Operation.NONE
        # In the server's form, so that what we own is what is stored: a key applied as a Secret's stringData, for one,
        # would never be removed again.
        applied = await ctx.client.apply(normalize(desired, schema), field_manager=manager)
        answer = applied.object
        ctx.memory.remember(answer["metadata"]["uid"], wish, differences(desired, answer, manager, schema))
        ctx.memory.settle(answer, wish)
    if applied.created:
        operation = Operation.CREATED
    elif live is None or _version(live) != _version(answer):
        operation = Operation.UPDATED
    else:
        operation = Operation.NONE
    if operation is not Operation.NONE:
        if not is_owned:
            _log.info("%s is cluster-scoped and gets no reference to its namespaced owner", resource.identity)
        kind = resource.gvk.kind
        _event(
            ctx,
            reason=f"{operation.value}{kind}",
            message=f"{operation.value} {kind} '{resource.key.name}'",
            action=operation.value.removesuffix("d"),
            related=answer,
        )
    return answer, operation


async def delete(ctx: ReconcileContext, resource: Resource, *, told: str) -> None:
    """Delete the object, if there is one that is not on its way out already.

    The request carries the UID of the object that was read: what has taken its name since is left alone (invariant 2).
    """
    identity = resource.identity
    with failing("failed to delete resource", identity):
        try:
            live = await ctx.client.get(resource.gvk, resource.key)
            if is_deleting(live):
                return
            await ctx.client.delete(resource.gvk, resource.key, uid=live["metadata"]["uid"])
        except NotFoundError:
            return
    _event(ctx, reason="ResourceDeleted", message=f"Resource {identity} {told}", action="Delete", related=live)


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


async def _claim(ctx: ReconcileContext, resource: Resource, desired: Object) -> bool:
    """Complete the desired object, in place: its type, no server-set metadata, and the owner's controller reference.

    A namespaced owner cannot own a cluster-scoped object; such an object gets no reference, and the answer is False.
    """
    desired["apiVersion"], desired["kind"] = resource.gvk.api_version, resource.gvk.kind
    desired.pop("status", None)
    metadata = desired["metadata"]
    for name in _SERVER_SET:
        metadata.pop(name, None)
    with failing("failed to determine the scope of resource", resource.identity):
        owner_namespaced = (await ctx.client.mapping(ctx.owner_gvk)).namespaced
        namespaced = (await ctx.client.mapping(resource.gvk)).namespaced
    if owner_namespaced and not namespaced:
        return False
    if owner_namespaced and resource.key.namespace != ctx.owner_key.namespace:
        raise ReconcileError(
            f"failed to apply resource {resource.identity}: an owner in namespace {ctx.owner_key.namespace!r} cannot "
            f"own an object in namespace {resource.key.namespace!r}: the garbage collector would delete it"
        )
    references = [found for found in metadata.get("ownerReferences") or () if found.get("uid") != ctx.owner_uid]
    metadata["ownerReferences"] = [*references, owner_reference(ctx.owner)]
    return True


def _version(obj: Object) -> str | None:
    version: str | None = obj["metadata"].get("resourceVersion")
    return version


def _event(ctx: ReconcileContext, *, reason: str, message: str, action: str, related: Object) -> None:
    if ctx.events is not None:
        ctx.events.event(ctx.owner, reason=reason, message=message, action=action, related=related)
