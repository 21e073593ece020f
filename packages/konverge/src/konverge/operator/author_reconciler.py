"""One pass over one owner, from the object as it was read to what is asked of the queue.

Whatever an author registers, in the short form or the long one, becomes a `Reconciler`; `AuthorReconciler` runs it:
decodes
the owner, makes the context, reports an owner that cannot be read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Generic, TypeAlias, TypeVar

from konverge.clock import Clock
from konverge.component import (
    AppliedCache,
    ApplyMetrics,
    Component,
    ConditionMetrics,
    ConditionReason,
    EventRecorder,
    ReconcileContext,
    TimeLimit,
    aggregate,
)
from konverge.crd import decode
from konverge.errors import BuildError, DecodeError, ReconcileError, format_error
from konverge.kube import Condition, GroupVersionKind, Object, remove_condition
from konverge.operator.owner_context import OperatorRun, OwnerContext
from konverge.operator.owner_events import OwnerEventReporter
from konverge.runtime import CachedClient, PartialFailureError, Result

__all__ = [
    "AuthorReconciler",
    "ComponentFactory",
    "Reconciler",
    "build_component",
    "build_components_reconciler",
    "check_condition_type",
    "list_component_kinds",
    "merge_requeue_after",
]

T = TypeVar("T")

Reconciler: TypeAlias = Callable[[T, OwnerContext], Awaitable[Result | None]]
"""An author's own reconcile: gets the typed owner and the context of the pass."""

ComponentFactory: TypeAlias = Callable[[T], Component]
"""Builds one component for an owner."""

# What the condition of an owner that cannot be read begins with: by it, the pass that can read it again knows it.
_UNREADABLE = "The object cannot be read: "


@dataclass(frozen=True, slots=True)
class AuthorReconciler(Generic[T]):
    """The passes over the owners of one kind.

    Args:
        cls: The custom resource class.
        reconciler: What a pass does.
        clock: The time.
        condition_type: The condition through which an owner that cannot be decoded is reported.
        events: Where events go; None records none.
        metrics: Where conditions are counted; None counts none.
        owner_events: Where changes of conditions are reported; None reports none.
        apply_metrics: Where the fate of components' resources is counted; None counts none.
        time_limit: How long each of the author's synchronous functions may take; None is without a limit.
        run: The run that the passes belong to.
        applied_cache: What earlier passes learned about the server's answers.
        adopt: Whether components take over objects that exist already, where the resource does not say.
    """

    cls: type[T]
    reconciler: Reconciler[T]
    clock: Clock
    condition_type: str
    events: EventRecorder | None = None
    metrics: ConditionMetrics | None = None
    owner_events: OwnerEventReporter | None = None
    apply_metrics: ApplyMetrics | None = None
    time_limit: TimeLimit | None = None
    run: OperatorRun | None = None
    applied_cache: AppliedCache = field(default_factory=AppliedCache)
    adopt: bool = True

    async def __call__(self, owner: Object, client: CachedClient) -> Result | None:
        """Run one pass.

        Args:
            owner: The object as it was read for this pass; the pass stages conditions on it.
            client: The cluster.

        Raises:
            konverge.errors.DecodeError: The owner does not fit its class; its status says so.
            konverge.runtime.PartialFailureError: The reconciler failed after a component had asked to be woken.
        """
        ctx = self.create_context(owner, client)
        before = _read_reasons(owner)
        typed = await self.decode(ctx)
        try:
            result = await self.reconciler(typed, ctx)
        except Exception as error:
            self._report_conditions(ctx, before, has_failed=True)
            if ctx.requeue_after is None:
                raise
            # What failed may be one component, and what waits for the end of its grace another.
            raise PartialFailureError(error, ctx.requeue_after) from error
        self._report_conditions(ctx, before, has_failed=False)
        return merge_requeue_after(result, ctx.requeue_after)

    def create_context(self, owner: Object, client: CachedClient) -> OwnerContext:
        """The context of one pass.

        Args:
            owner: The object as it was read for this pass; the pass stages conditions on it.
            client: The cluster.
        """
        return OwnerContext(
            client=client,
            owner=owner,
            clock=self.clock,
            events=self.events,
            metrics=self.metrics,
            applied_cache=self.applied_cache,
            apply_metrics=self.apply_metrics,
            time_limit=self.time_limit,
            run=self.run,
            adopt=self.adopt,
        )

    async def decode(self, ctx: OwnerContext) -> T:
        """The owner as an instance of its class.

        Raises:
            konverge.errors.DecodeError: It does not fit; its status says so.
        """
        try:
            typed: T = ctx.call(decode, self.cls, ctx.owner)
        except DecodeError as error:
            async with ctx.flushing_status():
                ctx.stage(_build_error_condition(ctx, self.condition_type, _UNREADABLE + error.problem))
                raise
        reported = ctx.condition(self.condition_type)
        if reported is not None and reported.message.startswith(_UNREADABLE):
            # An author's reconciler may never report this condition itself, and nobody else would ever take it away.
            remove_condition(ctx.owner, self.condition_type)
            await ctx.flush_status()
        return typed

    def _report_conditions(self, ctx: OwnerContext, before: Mapping[str, str], *, has_failed: bool) -> None:
        """Report the reasons that the pass has changed, but for the summary's, which says it again."""
        if self.owner_events is None:
            return
        now = _read_reasons(ctx.owner)
        for condition_type in sorted(ctx.staged_types - {self.condition_type}):
            earlier, condition = before.get(condition_type, ""), ctx.condition(condition_type)
            if condition is not None and now.get(condition_type) != earlier:
                self.owner_events.report_condition(ctx.owner, condition, earlier, has_failed=has_failed)


def build_components_reconciler(
    factories: Sequence[ComponentFactory[T]], condition_type: str, *, retired: Sequence[str] = ()
) -> Reconciler[T]:
    """Reconcile the components that these make, in order, and sum them up in one condition; write the status once.

    Conditions of the retired types are taken away.

    A component that fails, or cannot be built, stops no other. What went wrong is raised after the last one, so that
    the pass is repeated.
    """
    # The condition type of each factory's latest component: where to report that it makes none any more.
    types: dict[int, str] = {}

    async def reconcile(owner: T, ctx: ReconcileContext) -> None:
        components: list[Component] = []
        errors: list[Exception] = []
        unbuilt: list[str] = []
        async with ctx.flushing_status():
            for place, factory in enumerate(factories):
                try:
                    component = build_component(ctx.call(factory, owner))
                    check_condition_type(component, components, condition_type)
                except Exception as error:  # noqa: BLE001  # an author's code: the other components are not to suffer
                    errors.append(error)
                    told = format_error(error)
                    unbuilt.append(f"{getattr(factory, '__name__', factory)}: {told}")
                    # Other owners may have it under another type.
                    if place in types and ctx.condition(types[place]) is not None:
                        ctx.stage(_build_error_condition(ctx, types[place], told))
                    continue
                types[place] = component.condition_type
                components.append(component)
                try:
                    await component.reconcile(ctx)
                except ReconcileError as error:  # its condition says so already
                    errors.append(error)
            ctx.retire_conditions(*retired)
            if unbuilt:
                ctx.stage(_build_error_condition(ctx, condition_type, "; ".join(unbuilt)))
            else:
                ctx.stage(aggregate(condition_type, ctx.owner, components))
            _raise_all(errors)

    return reconcile


def build_component(answer: object) -> Component:
    """The component that a factory has answered with.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(answer, Component):
        raise TypeError(f"expected a Component, found {type(answer).__name__}; does it end in .build()?")
    return answer


def list_component_kinds(
    cls: type[T], factories: Sequence[ComponentFactory[T]], owner: Object, limit: TimeLimit
) -> set[GroupVersionKind]:
    """The kinds of the objects in the components of an owner, as far as those can be built."""
    found: set[GroupVersionKind] = set()
    for factory in factories:
        try:
            component = build_component(limit.call(factory, decode(cls, owner)))
        except Exception:  # noqa: BLE001  # an author's code; the pass that fails by it will say so
            continue
        found.update(entry.resource.gvk for entry in component.entries)
    return found


def check_condition_type(component: Component, earlier: Sequence[Component], summary: str) -> None:
    """Refuse a component whose condition another one writes: the owner would show the last writer's as both.

    Raises:
        konverge.errors.BuildError: It has the condition type of an earlier component, or that of the summary.
    """
    if component.condition_type == summary:
        raise BuildError(
            f'component "{component.name}"',
            [f"its condition type {summary} is that of the owner's summary: expected one of its own"],
        )
    for other in earlier:
        if other.condition_type == component.condition_type:
            raise BuildError(
                f'component "{component.name}"',
                [f'it reports as {component.condition_type}, and so does component "{other.name}": expected two types'],
            )


def _build_error_condition(ctx: ReconcileContext, condition_type: str, message: str) -> Condition:
    return Condition(condition_type, "False", ConditionReason.ERROR, message, ctx.owner_generation)


def _read_reasons(owner: Object) -> dict[str, str]:
    """The reasons of the owner's conditions by type, as far as they are texts: anybody may write one."""
    listed = (owner.get("status") or {}).get("conditions") or ()
    found = {each.get("type"): each.get("reason") for each in listed if isinstance(each, dict)}
    return {kind: reason for kind, reason in found.items() if isinstance(kind, str) and isinstance(reason, str)}


def _raise_all(errors: Sequence[Exception]) -> None:
    match errors:
        case []:
            return
        case [error]:
            raise error
    raise ExceptionGroup("several components failed: " + "; ".join(map(format_error, errors)), errors)


def merge_requeue_after(result: Result | None, requeue_after: timedelta | None) -> Result | None:
    """What the author asks for, at the time of the components if that is sooner."""
    if requeue_after is None:
        return result
    if result is None:
        return Result(requeue_after=requeue_after)
    if result.requeue_after is None or requeue_after < result.requeue_after:
        return replace(result, requeue_after=requeue_after)
    return result
