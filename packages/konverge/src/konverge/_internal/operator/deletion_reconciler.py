"""Reconciles of owners that are being deleted: their cleanup and their status.

`Ready` is False as long as the owner exists: with reason ``Deleting`` and what it waits for, or with ``Error`` and the
error of the cleanup. A conflict is no error: the next reconcile reads again. A reconcile writes the status at most
once, and the last one, which removes the finalizer, does not. An owner that still exists after five minutes gets a
Warning event.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge._internal.component import ConditionReason
from konverge._internal.kube import Condition, Object, parse_time
from konverge._internal.operator.author_reconciler import AuthorReconciler, merge_requeue_after
from konverge._internal.operator.function_calls import Reconciler, await_with_timeout
from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.operator.owner_events import is_caused_only_by
from konverge._internal.runtime import CachedClient, Result
from konverge.errors import ConflictError, InvalidError, StatusNotStoredError, format_error

__all__ = ["DELETING", "DeletionReconciler", "build_deletion_condition"]

DELETING = "Deleting"
"""The reason of the condition `Ready` of an owner that is being deleted."""

_STUCK_AFTER = timedelta(minutes=5)


def build_deletion_condition(ctx: OwnerContext, condition_type: str, waiting: str) -> Condition:
    """Build the condition of an owner that is being deleted and waits."""
    return Condition(
        condition_type, "False", DELETING, f"The object is being deleted: {waiting}.", ctx.owner_generation
    )


@dataclass(frozen=True, slots=True)
class DeletionReconciler:
    """The reconcile of owners of one kind that are being deleted.

    Args:
        reconciler: The reconcile of owners that are not being deleted.
        names: The finalizers of the operator.
        finalize: The cleanup; None if owners have no finalizer of the operator.
        timeout: The time limit of a reconcile.
    """

    reconciler: AuthorReconciler[Any]
    names: tuple[str, ...] = ()
    finalize: Reconciler[Any] | None = None
    timeout: timedelta = timedelta.max

    async def __call__(self, owner: Object, client: CachedClient) -> Result | None:
        """Run the cleanup; None means that it is complete.

        Raises:
            konverge.runtime.ReconcileTimeoutError: The cleanup took too long; the status reports this.
            Exception: The error of the cleanup, which the status reports.
        """
        assert self.finalize is not None
        ctx = self.reconciler.create_context(owner, client)
        was = ctx.condition(self.reconciler.condition_type)
        typed = await self.reconciler.decode(ctx)
        try:
            result = await await_with_timeout(self.finalize(typed, ctx), self.timeout, _format_finalizers(self.names))
        except Exception as error:
            if is_caused_only_by(error, ConflictError):
                # Another client has changed an object since it was read: the deletion goes on with the next reconcile.
                await self._report_deletion(ctx, was, f"{_format_finalizers(self.names)} is not done yet")
                raise
            async with ctx.flushing_status(refused=lambda _: ctx.withdraw_fields()):
                self._stage_error(ctx, error)
                raise
        if result is None:
            return None
        await self._report_deletion(
            ctx, was, ctx.deletion_waits_for or f"{_format_finalizers(self.names)} is not done yet"
        )
        return merge_requeue_after(merge_requeue_after(result, ctx.requeue_after), self._time_until_stuck(ctx))

    async def report(self, owner: Object, client: CachedClient) -> Result | None:
        """Report an owner that waits only for finalizers of other controllers, if it has the condition `Ready`."""
        ctx = self.reconciler.create_context(owner, client)
        was = ctx.condition(self.reconciler.condition_type)
        if was is None:
            return None
        await self._report_deletion(
            ctx, was, f"{_format_finalizers(owner['metadata'].get('finalizers') or ())} of others is still there"
        )
        return merge_requeue_after(None, self._time_until_stuck(ctx))

    async def _report_deletion(self, ctx: OwnerContext, was: Condition | None, waiting: str) -> None:
        """Write the status, and record an event when the deletion begins or takes too long."""
        condition_type = self.reconciler.condition_type
        if condition_type not in ctx.staged_types:
            ctx.stage(build_deletion_condition(ctx, condition_type, waiting))
        try:
            await ctx.flush_status()
        except (InvalidError, StatusNotStoredError) as error:
            if ctx.withdraw_fields():  # the author's function staged fields that the server does not store
                self._stage_error(ctx, error)
                await ctx.flush_status()
            raise
        condition = ctx.condition(condition_type)
        if self.reconciler.owner_events is not None and condition is not None:
            is_new = was is None or was.reason != condition.reason
            is_stuck = self._time_until_stuck(ctx) is None
            self.reconciler.owner_events.report_deletion(ctx.owner, condition.message, is_new=is_new, is_stuck=is_stuck)

    def _stage_error(self, ctx: OwnerContext, error: Exception) -> None:
        message = f"The object cannot be deleted: {ctx.secret_values.hide(format_error(error))}"
        condition_type = self.reconciler.condition_type
        ctx.stage(Condition(condition_type, "False", ConditionReason.ERROR, message, ctx.owner_generation))

    def _time_until_stuck(self, ctx: OwnerContext) -> timedelta | None:
        """Return the time until the deletion takes too long; None if it already does."""
        left = parse_time(ctx.owner["metadata"]["deletionTimestamp"]) + _STUCK_AFTER - ctx.clock.now()
        return None if left <= timedelta(0) else left + timedelta(seconds=1)


def _format_finalizers(finalizers: Any) -> str:
    names = ", ".join(finalizers)
    return f"the finalizer{'s' if len(finalizers) > 1 else ''} {names}"
