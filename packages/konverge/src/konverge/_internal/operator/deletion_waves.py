"""The deletion of an owner's components in waves: its finalizer, and the step of the deletion that waits for it.

`Operator.manages` adds the finalizer to an owner right before the first component with a wave is reconciled, so an
owner without waves never has it. For `Operator.reconciles`, the author's own finalizer calls
`OwnerContext.delete_in_waves`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from konverge._internal.component import Component
from konverge._internal.kube import Object
from konverge._internal.operator.component_factories import ComponentFactory, build_component
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.runtime import Result

__all__ = ["add_wave_finalizer", "build_wave_finalizer_name", "delete_components", "is_never_needed"]

T = TypeVar("T")


def build_wave_finalizer_name(operator: str) -> str:
    """Return the finalizer of owners whose deletion has waves."""
    return f"waves.konverge.dev/{operator}"


def is_never_needed(owner: Object) -> bool:
    """Return False: the reconcile of a component adds the finalizer, not the runtime."""
    return False


async def add_wave_finalizer(ctx: OwnerContext, component: Component) -> None:
    """Add the finalizer to the owner if the component has waves, before any of its objects exists.

    Raises:
        konverge.errors.ConflictError: Another client changed the owner meanwhile; the next reconcile reads it again.
    """
    name, metadata = ctx.wave_finalizer, ctx.owner["metadata"]
    present = metadata.get("finalizers") or []
    if not name or not component.has_deletion_waves or name in present:
        return
    # The patch replaces the whole list: the resource version prevents the loss of another controller's entry.
    body = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": [*present, name]}}
    written = await ctx.cluster.patch(ctx.owner_gvk, ctx.owner_key, body, patch_type="merge")
    for field in ("resourceVersion", "finalizers"):
        metadata[field] = written["metadata"][field]


def delete_components(factories: Sequence[ComponentFactory[Any]]) -> Callable[[Any, OwnerContext], Any]:
    """Return the step of an owner's deletion that deletes its components in waves."""

    async def delete(owner: Any, ctx: OwnerContext) -> Result | None:
        # All components first: one that cannot be built could have objects in an earlier wave.
        components = [build_component(ctx.call(factory, owner)) for factory in factories]
        return await ctx.delete_in_waves(*components)

    return delete
