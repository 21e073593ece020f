"""One run of a box: the reconciles in a running operator, and what they share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.operator import OwnerContext, Result
from konverge._internal.operator.deletion_reconciler import build_deletion_condition
from konverge._internal.operator.dry_run_cluster import Indexes
from konverge._internal.operator.owner_context import OperatorRun
from konverge._internal.runtime import Process
from konverge.errors import format_error
from konverge_box._internal.calls import Caller
from konverge_box._internal.file import OperatorBox
from konverge_box._internal.runtime.box_conditions import READY
from konverge_box._internal.runtime.box_health import BoxHealth, BoxReconcileResult, Wanted
from konverge_box._internal.runtime.box_metrics import BoxMetrics, StepTimer
from konverge_box._internal.runtime.box_reconciler import BoxReconciler, StepObserver
from konverge_box._internal.runtime.pause import (
    DRY_RUN_ANNOTATION,
    PAUSED_ANNOTATION,
    is_annotated,
    list_own_reports,
)
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.reconcile_state import ReconcileInputs
from konverge_box._internal.runtime.resource_dry_run import predict_reconcile
from konverge_box._internal.runtime.step_order import DeniedError
from konverge_box._internal.runtime.uniqueness import format_index_key, format_index_name, is_oldest

__all__ = ["BoxRun"]

_log = logging.getLogger("konverge.box")

_MAX_REMEMBERED = 100_000


class BoxRun:
    """One run of a box. It owns the health of the custom resources, the metrics and the caller.

    Args:
        box: The box at the beginning.
        pipelines: Its pipelines by name. Their kinds stay the same during the run.
        run: The run of the operator.
        process: The process of the operator.
        caller: Sends external calls.
        indexes: The indexes of the operator, for dry runs of single custom resources.

    Attributes:
        reload_problem: The error of the changed file that is not in use; empty without one.
    """

    def __init__(
        self,
        box: OperatorBox,
        pipelines: Mapping[str, Pipeline],
        run: OperatorRun,
        process: Process,
        caller: Caller,
        indexes: Indexes | None = None,
    ) -> None:
        self.name = box.metadata.name
        self.process = process
        self.metrics = None if run.metrics is None else BoxMetrics(self.name, run.metrics)
        self.health = BoxHealth(*_read_health_settings(box))
        self.reload_problem = ""
        self._caller = caller
        self._indexes: Indexes = indexes or {}
        self._clock = run.clock
        self._entropy = run.entropy
        self._gvks = {name: pipeline.gvk for name, pipeline in pipelines.items()}
        # By owner, so that each is read from the server once.
        self._foreign_conditions: dict[tuple[str, str], frozenset[str]] = {}
        run.sections[f"box {self.name}"] = self.build_debug_rows

    def replace_box(self, box: OperatorBox) -> None:
        """Use the settings of a replaced box, and queue all its owners."""
        self.health.configure(*_read_health_settings(box))
        for name, gvk in self._gvks.items():
            self.process.controllers[gvk].workers = box.spec.crds[name].reconcile.workers
            self.process.enqueue(gvk, self.process.list_owners(gvk), reason="the box changed")

    async def reconcile(self, pipeline: Pipeline, ctx: OwnerContext) -> Result | None:
        """Reconcile one owner and record the result, unless another custom resource must be ready first.

        Raises:
            DeniedError: The object breaks rules, and the file requests a retry.
            Exception: The error of the first step that failed.
        """
        name, key = pipeline.name, ctx.owner_key
        reconciler = self._build_reconciler(pipeline, ctx)
        unmet = self._describe_unmet(name, key)
        if unmet:
            await reconciler.report_waiting(unmet)
            return Result(requeue_after=pipeline.resync)
        if is_annotated(ctx.owner, DRY_RUN_ANNOTATION) and not is_annotated(ctx.owner, PAUSED_ANNOTATION):
            async with ctx.flushing_status():
                ctx.stage(await predict_reconcile(pipeline, ctx, self._indexes))
                ctx.retire_conditions(*list_own_reports(ctx.owner))
            self._record_reconcile(name, key, BoxReconcileResult.PAUSED)
            return Result(requeue_after=pipeline.resync)
        started = ctx.clock.monotonic()
        try:
            result = await reconciler.reconcile()
        except asyncio.CancelledError:
            # The exception does not name its reason: the clock shows whether the reconcile timed out.
            seconds = ctx.clock.monotonic() - started
            if seconds >= pipeline.reconcile_timeout.total_seconds():
                self._record_reconcile(
                    name, key, BoxReconcileResult.ERROR, f"the reconcile timed out after {seconds:.0f} s"
                )
            raise
        except DeniedError as error:
            self._record_reconcile(name, key, BoxReconcileResult.DENIED, str(error))
            raise
        except Exception as error:
            self._record_reconcile(name, key, BoxReconcileResult.ERROR, format_error(error))
            raise
        finally:
            self._record_step_results(pipeline, ctx, reconciler)
        outcome = BoxReconcileResult.SUCCESS
        if reconciler.state.is_paused:
            outcome = BoxReconcileResult.PAUSED
        elif isinstance(reconciler.state.failure, DeniedError):
            outcome = BoxReconcileResult.DENIED
        self._record_reconcile(name, key, outcome)
        return result

    async def finalize(self, pipeline: Pipeline, ctx: OwnerContext) -> Result | None:
        """Do one step of the deletion of one owner; return None when the box has cleaned up after it.

        Raises:
            Exception: A part of the deletion failed.
        """
        if is_annotated(ctx.owner, DRY_RUN_ANNOTATION):
            waiting = f"nothing is deleted while the annotation {DRY_RUN_ANNOTATION} is set"
            ctx.stage(build_deletion_condition(ctx, READY, waiting))
            return Result(requeue_after=pipeline.resync)
        return await self._build_reconciler(pipeline, ctx).finalize()

    def build_debug_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the debug page's table."""
        rows = [
            {
                "custom resource": name,
                "state": health.state,
                "failures in a row": health.failures,
                "waiting": len(health.waiting),
                **{f"reconciles: {result.value}": health.results[result] for result in BoxReconcileResult},
                "last error": health.last_error,
                "at": "" if health.last_error_at is None else health.last_error_at.isoformat(timespec="seconds"),
            }
            for name, health in self.health.resources.items()
        ]
        return [*rows, *([{"custom resource": "(file)", "state": self.reload_problem}] if self.reload_problem else [])]

    def _build_reconciler(self, pipeline: Pipeline, ctx: OwnerContext) -> BoxReconciler:
        observer: StepObserver | None = None if self.metrics is None else StepTimer(self.metrics, pipeline.name)
        inputs = ReconcileInputs(
            pipeline=pipeline,
            ctx=ctx,
            caller=self._caller,
            entropy=self._entropy,
            is_unique=self._build_uniqueness_check(pipeline, ctx.owner),
            now=ctx.clock.now(),
            foreign_conditions=self._foreign_conditions.get((pipeline.name, ctx.owner_uid), frozenset()),
        )
        return BoxReconciler(inputs, observer)

    def _build_uniqueness_check(self, pipeline: Pipeline, owner: Object) -> Callable[[str, Any], bool]:
        """Return a function that tells whether no older object of the custom resource has a value."""

        def check(path: str, value: Any) -> bool:
            keys = self.process.list_keys_by_index(pipeline.gvk, format_index_name(path), format_index_key(value))
            others = (self.process.get_cached(pipeline.gvk, key) for key in keys)
            return is_oldest(owner, [other for other in others if other is not None])

        return check

    def _describe_unmet(self, name: str, key: ObjectKey) -> str:
        """Describe what the owner must wait for, and record that it waits; return an empty text for nothing."""
        if not self.health.has_started:
            self.health.start({name: self.process.list_owners(gvk) for name, gvk in self._gvks.items()})
        unmet = self.health.find_unmet(name)
        if unmet is not None:
            other, _ = unmet
            self.health.remove_missing(other, self.process.list_owners(self._gvks[other]))
            unmet = self.health.find_unmet(name)
        if unmet is None:
            return ""
        self.health.record_waiting(name, key)
        if self.metrics is not None:
            self.metrics.record_reconcile(name, BoxReconcileResult.WAITING, self.health)
        return self.health.describe_unmet(*unmet)

    def _record_step_results(self, pipeline: Pipeline, ctx: OwnerContext, reconciler: BoxReconciler) -> None:
        results = reconciler.state.results
        if results.violations is not None and self.metrics is not None:
            denied, warned = bool(results.violations.denied), bool(results.violations.warned)
            self.metrics.record_validation(pipeline.name, denied=denied, warned=warned)
        if results.foreign_conditions:
            if len(self._foreign_conditions) >= _MAX_REMEMBERED:
                self._foreign_conditions.clear()
            owner = pipeline.name, ctx.owner_uid
            earlier = self._foreign_conditions.get(owner, frozenset())
            self._foreign_conditions[owner] = earlier | results.foreign_conditions

    def _record_reconcile(self, name: str, key: ObjectKey, result: BoxReconcileResult, error: str = "") -> None:
        """Record the end of a reconcile, and queue the owners that waited for it."""
        health = self.health.resources[name]
        was_degraded = health.is_degraded
        self.health.record_reconcile(name, key, result, error=error, at=self._clock.now())
        if health.is_degraded != was_degraded:
            if health.is_degraded:
                _log.error(
                    "box %s: %s is degraded: %d reconciles in a row have failed", self.name, name, health.failures
                )
            else:
                _log.info("box %s: %s is no longer degraded", self.name, name)
        if self.metrics is not None:
            self.metrics.record_reconcile(name, result, self.health)
        for other, keys in self.health.take_unblocked().items():
            self.process.enqueue(self._gvks[other], keys, reason="the custom resource that it waited for is ready")


def _read_health_settings(box: OperatorBox) -> tuple[dict[str, Mapping[str, Wanted]], dict[str, int]]:
    crds = box.spec.crds
    return (
        {name: declared.depends_on for name, declared in crds.items()},
        {name: declared.reconcile.failure_threshold for name, declared in crds.items()},
    )
