"""Reconciles that only predict their effects: nothing is written, and external calls only read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from konverge._internal.operator import OwnerContext, Result
from konverge.clock import SystemEntropy
from konverge_box._internal.calls import Caller, CallRequest
from konverge_box._internal.calls.call_result import CallResult
from konverge_box._internal.runtime.box_reconciler import BoxReconciler
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.reconcile_state import ReconcileInputs
from konverge_box._internal.runtime.uniqueness import build_cluster_uniqueness_check

__all__ = ["BoxDryRun", "DryRunCaller"]

_READING = frozenset({"GET", "HEAD"})


class BoxDryRun:
    """The reconciles of a box outside a run, with a context that writes nothing.

    It takes the place of `runtime.box_run.BoxRun`, and records nothing.
    """

    async def reconcile(self, pipeline: Pipeline, ctx: OwnerContext) -> Result | None:
        """Predict one reconcile.

        Raises:
            Exception: The error of the first step that failed.
        """
        async with self._open_reconciler(pipeline, ctx) as reconciler:
            return await reconciler.reconcile()

    async def finalize(self, pipeline: Pipeline, ctx: OwnerContext) -> Result | None:
        """Predict one step of the deletion.

        Raises:
            Exception: A part of the deletion failed.
        """
        async with self._open_reconciler(pipeline, ctx) as reconciler:
            return await reconciler.finalize()

    @asynccontextmanager
    async def _open_reconciler(self, pipeline: Pipeline, ctx: OwnerContext) -> AsyncIterator[BoxReconciler]:
        entropy = SystemEntropy()
        async with DryRunCaller(clock=ctx.clock, entropy=entropy) as caller:
            is_unique = await build_cluster_uniqueness_check(ctx.cluster, pipeline, ctx.owner)
            yield BoxReconciler(
                ReconcileInputs(
                    pipeline=pipeline,
                    ctx=ctx,
                    caller=caller,
                    entropy=entropy,
                    is_unique=is_unique,
                    now=ctx.clock.now(),
                    is_dry_run=True,
                )
            )


class DryRunCaller(Caller):
    """A caller that only sends requests that read."""

    async def call(self, request: CallRequest) -> CallResult:
        """Send a request that reads; return a failure for any request that can change data."""
        if request.protocol == "prometheus" or (request.protocol == "http" and request.method in _READING):
            return await super().call(request)
        kind = request.method if request.protocol == "http" else request.protocol
        return CallResult(error=f"not sent in a dry run: a {kind} call can change data")
