"""One reconcile of one owner, from the object as it was read to the next time that the queue gets its key.

An author registers component factories (`operator.component_factories`) or a `Reconciler` function.
`AuthorReconciler` makes the context, decodes the owner, runs either of them and reports an owner that does not fit its
class.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Generic, TypeVar

from konverge._internal.component import (
    AppliedCache,
    ApplyMetrics,
    ConditionMetrics,
    Diagnosis,
    EventRecorder,
    TimeLimit,
)
from konverge._internal.crd import decode, find_definition
from konverge._internal.kube import Object, remove_condition
from konverge._internal.operator.annotated_conditions import show_conditions
from konverge._internal.operator.component_factories import ComponentFactories, build_error_condition
from konverge._internal.operator.function_calls import Reconciler
from konverge._internal.operator.function_reconcile import FunctionReconcile
from konverge._internal.operator.managed_reconcile import ManagedReconcile
from konverge._internal.operator.owner_context import OperatorRun, OwnerContext
from konverge._internal.operator.owner_events import OwnerEventReporter
from konverge._internal.runtime import CachedClient, PartialFailureError, Result
from konverge.clock import Clock, SystemEntropy
from konverge.errors import DecodeError

__all__ = [
    "AuthorReconciler",
    "merge_requeue_after",
]

T = TypeVar("T")

# Prefix of the condition of an owner that cannot be decoded; the next successful reconcile recognizes it.
_UNREADABLE = "The object cannot be read: "


@dataclass(frozen=True, slots=True)
class AuthorReconciler(Generic[T]):
    """The reconcile of the owners of one kind.

    Args:
        cls: The custom resource class.
        reconciler: The author's reconcile function, or the functions that build the components of an owner.
        clock: The time.
        condition_type: The condition that reports an owner that cannot be decoded.
        events: The recorder of events; None records none.
        metrics: The metrics of conditions; None records none.
        owner_events: The reporter of changed conditions; None reports none.
        apply_metrics: The metrics of the components' resources; None records none.
        time_limit: The time limit of each synchronous author function; None is without a limit.
        run: The run of the operator.
        applied_cache: The results of earlier applies.
        adopt: The default for resources without the option `konverge.options.adopt`.
        timeout: The time limit of a reconcile.
        reports_errors: True if `condition_type` reports errors of an author's reconcile function.
        diagnosis: The examination of late workloads; None examines nothing.
        wave_finalizer: The finalizer of owners whose components are deleted in waves; empty adds none.
        finalizers: The finalizers of the author's function.
        condition_annotation: The annotation with the conditions of owners whose status belongs to another controller.
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
    timeout: timedelta = timedelta.max
    reports_errors: bool = True
    diagnosis: Diagnosis | None = None
    wave_finalizer: str = ""
    finalizers: tuple[str, ...] = ()
    condition_annotation: str = ""

    def __call__(self, owner: Object, client: CachedClient) -> Awaitable[Result | None]:
        """Reconcile an owner (`runtime.owner_reconciler.ReconcileOwner`).

        Args:
            owner: The object as it was read for this reconcile; `ReconcileContext.stage` sets its conditions.
            client: The cluster.
        """
        return self.reconcile(self.create_context(owner, client))

    async def reconcile(self, ctx: OwnerContext) -> Result | None:
        """Decode the owner, reconcile its components or run the author's function, and report changed conditions.

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
                result = await ManagedReconcile(self.reconciler, typed, ctx, self.timeout).run()
            elif self.reports_errors:
                result = await FunctionReconcile(self.reconciler, typed, ctx, self.timeout, self.condition_type).run()
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
        """Create the context of one reconcile.

        Args:
            owner: The object as it was read for this reconcile; `ReconcileContext.stage` sets its conditions.
            client: The cluster.
        """
        source = None if find_definition(self.cls).has_own_status else owner
        return OwnerContext(
            client=client,
            owner=owner if source is None else show_conditions(owner, self.condition_annotation),
            source=source,
            condition_annotation=self.condition_annotation,
            clock=self.clock,
            events=self.events,
            metrics=self.metrics,
            applied_cache=self.applied_cache,
            apply_metrics=self.apply_metrics,
            time_limit=self.time_limit,
            run=self.run,
            adopt=self.adopt,
            entropy=SystemEntropy() if self.run is None else self.run.entropy,
            diagnosis=self.diagnosis,
            owner_class=self.cls,
            wave_finalizer=self.wave_finalizer,
            finalizers=self.finalizers,
        )

    async def decode(self, ctx: OwnerContext) -> T:
        """Decode the owner into its class.

        Raises:
            konverge.errors.DecodeError: The owner does not fit its class; its status reports this.
        """
        try:
            typed: T = ctx.call(decode, self.cls, ctx.owner_as_read)
        except DecodeError as error:
            async with ctx.flushing_status():
                ctx.stage(build_error_condition(ctx, self.condition_type, _UNREADABLE + error.problem))
                raise
        reported = ctx.condition(self.condition_type)
        if reported is not None and reported.message.startswith(_UNREADABLE):
            # An author's reconciler may never write this condition itself, so that no later write would remove it.
            remove_condition(ctx.owner, self.condition_type)
            await ctx.flush_status()
        return typed

    def _report_conditions(self, ctx: OwnerContext, before: Mapping[str, str], *, has_failed: bool) -> None:
        """Report the reasons that the reconcile has changed, except that of the summary, which repeats one."""
        if self.owner_events is None:
            return
        now = _read_reasons(ctx.owner)
        for condition_type in sorted(ctx.staged_types - {self.condition_type}):
            earlier, condition = before.get(condition_type, ""), ctx.condition(condition_type)
            if condition is not None and now.get(condition_type) != earlier:
                self.owner_events.report_condition(ctx.owner, condition, earlier, has_failed=has_failed)


def _read_reasons(owner: Object) -> dict[str, str]:
    """Return the reasons of the owner's conditions by type. Other clients write conditions: only strings count."""
    listed = (owner.get("status") or {}).get("conditions") or ()
    reasons = {entry.get("type"): entry.get("reason") for entry in listed if isinstance(entry, dict)}
    return {kind: reason for kind, reason in reasons.items() if isinstance(kind, str) and isinstance(reason, str)}


def merge_requeue_after(result: Result | None, requeue_after: timedelta | None) -> Result | None:
    """Return the author's result, with the requeue of the components if that is sooner."""
    if requeue_after is None:
        return result
    if result is None:
        return Result(requeue_after=requeue_after)
    if result.requeue_after is None or requeue_after < result.requeue_after:
        return replace(result, requeue_after=requeue_after)
    return result
