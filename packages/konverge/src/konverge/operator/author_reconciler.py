"""One reconcile of one owner, from the object as it was read to the next time that the queue gets its key.

An author registers component factories (`konverge.operator.component_factories`) or a `Reconciler` function.
`AuthorReconciler` makes the context, decodes the owner, runs either of them and reports an owner that does not fit its
class.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Generic, TypeAlias, TypeVar

from konverge.clock import Clock
from konverge.component import (
    AppliedCache,
    ApplyMetrics,
    ConditionMetrics,
    EventRecorder,
    TimeLimit,
)
from konverge.crd import decode
from konverge.errors import DecodeError, ReconcileError
from konverge.kube import Object, remove_condition
from konverge.operator.component_factories import ComponentFactories, ComponentsReconcile, build_error_condition
from konverge.operator.owner_context import OperatorRun, OwnerContext
from konverge.operator.owner_events import OwnerEventReporter
from konverge.runtime import CachedClient, PartialFailureError, Result

__all__ = [
    "AuthorReconciler",
    "Reconciler",
    "merge_requeue_after",
]

T = TypeVar("T")

Reconciler: TypeAlias = Callable[[T, OwnerContext], Awaitable[Result | None]]
"""An author's own reconcile: gets the typed owner and the context of the pass."""

# What the condition of an owner that cannot be read begins with: by it, the pass that can read it again knows it.
_UNREADABLE = "The object cannot be read: "


@dataclass(frozen=True, slots=True)
class AuthorReconciler(Generic[T]):
    """The passes over the owners of one kind.

    Args:
        cls: The custom resource class.
        reconciler: The author's reconcile function, or the functions that build the components of an owner.
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
    reconciler: Reconciler[T] | ComponentFactories[T]
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

    def __call__(self, owner: Object, client: CachedClient) -> Awaitable[Result | None]:
        """Reconcile an owner (`konverge.runtime.owner_reconciler.ReconcileOwner`).

        Args:
            owner: The object as it was read for this reconcile, which stages conditions on it.
            client: The cluster.
        """
        return self.reconcile(self.create_context(owner, client))

    async def reconcile(self, ctx: OwnerContext) -> Result | None:
        """Decode the owner, reconcile its components or run the author's function, and report changed conditions.

        Components are reconciled in order; a component that fails does not stop the others. The status is written
        once, with a condition that summarizes them.

        Raises:
            konverge.errors.DecodeError: The owner does not fit its class; its status reports this.
            konverge.runtime.PartialFailureError: The reconcile failed after a component had requested a requeue.
            Exception: The errors of the components, or of the author's function.
        """
        before = _read_reasons(ctx.owner)
        typed = await self.decode(ctx)
        result: Result | None = None
        try:
            if isinstance(self.reconciler, ComponentFactories):
                async with ctx.flushing_status():
                    components = ComponentsReconcile(self.reconciler, typed, ctx)
                    for component in components.iter_components():
                        try:
                            await component.reconcile(ctx)
                        except ReconcileError as error:  # its condition reports it already
                            components.errors.append(error)
                    components.stage_summary()
                    components.raise_errors()
            else:
                result = await self.reconciler(typed, ctx)
        except Exception as error:
            self._report_conditions(ctx, before, has_failed=True)
            if ctx.requeue_after is None:
                raise
            # One component may have failed while another one waits for the end of its grace period.
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
                ctx.stage(build_error_condition(ctx, self.condition_type, _UNREADABLE + error.problem))
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


def _read_reasons(owner: Object) -> dict[str, str]:
    """The reasons of the owner's conditions by type, as far as they are texts: anybody may write one."""
    listed = (owner.get("status") or {}).get("conditions") or ()
    found = {each.get("type"): each.get("reason") for each in listed if isinstance(each, dict)}
    return {kind: reason for kind, reason in found.items() if isinstance(kind, str) and isinstance(reason, str)}


def merge_requeue_after(result: Result | None, requeue_after: timedelta | None) -> Result | None:
    """What the author asks for, at the time of the components if that is sooner."""
    if requeue_after is None:
        return result
    if result is None:
        return Result(requeue_after=requeue_after)
    if result.requeue_after is None or requeue_after < result.requeue_after:
        return replace(result, requeue_after=requeue_after)
    return result
