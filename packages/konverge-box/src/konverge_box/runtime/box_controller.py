"""A box as an operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from konverge.cache import label_index
from konverge.clock import Clock, Entropy, SystemEntropy
from konverge.crd import UnstructuredResource, find_definition
from konverge.errors import format_error
from konverge.kube import Object, ObjectKey, find_condition
from konverge.operator import READ, Change, Operator, OwnerContext, Result, generation_changed
from konverge.operator.owner_context import OperatorRun
from konverge.runtime import Process
from konverge.runtime.background import background_task
from konverge_box.calls import Caller
from konverge_box.file import OperatorBox
from konverge_box.providers import ProviderPool
from konverge_box.runtime.active_box import ActiveBox
from konverge_box.runtime.box_conditions import VALIDATION_FAILED
from konverge_box.runtime.box_health import BoxReconcileResult
from konverge_box.runtime.box_permissions import list_uses
from konverge_box.runtime.box_reconciler import BoxReconciler
from konverge_box.runtime.box_reloader import BoxReloader
from konverge_box.runtime.box_run import BoxRun
from konverge_box.runtime.dry_run_caller import DryRunCaller
from konverge_box.runtime.pipeline import Pipeline
from konverge_box.runtime.resource_class import build_resource_class
from konverge_box.runtime.step_order import DeniedError
from konverge_box.runtime.uniqueness import build_cluster_uniqueness_check, build_index_function, format_index_name
from konverge_box.steps.labels import OWNER_UID

__all__ = ["BoxController", "build_box_operator"]

_DENIED = "konverge.dev/denied"


def build_box_operator(box: OperatorBox, *, file: Path | None = None, pool: ProviderPool | None = None) -> Operator:
    """The operator that a box is: one reconcile for each of its custom resources.

    Args:
        box: The box.
        file: Where it was read. It is looked at again and again while the operator runs, and when it has changed the
            box is another one. None for a box that stays as it is.
        pool: The providers; those of installed packages when not given.

    Raises:
        konverge.errors.KonvergeError: A step cannot be compiled, or no server would take a definition.
    """
    return BoxController(box, file=file, pool=pool).operator


class BoxController(ActiveBox):
    """The box of an operator: what its passes work with, which may become another one while they run.

    Args:
        box: The box at the beginning.
        file: Where it was read; None for a box that stays as it is.
        pool: The providers; those of installed packages when not given.
        make_caller: Makes what sends the external calls of a run.

    Attributes:
        operator: The operator.
    """

    def __init__(
        self,
        box: OperatorBox,
        *,
        file: Path | None = None,
        pool: ProviderPool | None = None,
        make_caller: Callable[[Clock, Entropy], Caller] = lambda clock, entropy: Caller(clock=clock, entropy=entropy),
    ) -> None:
        super().__init__(box, pool or ProviderPool())
        self._owns_pool = pool is None
        self._make_caller = make_caller
        self.operator = Operator(_build_operator_name(box))
        self._file = file
        self._own = {declared.resource.gvk: build_resource_class(declared) for declared in box.spec.crds.values()}
        for name in box.spec.crds:
            self._register_resource(name)
        self.operator.runs_in_background(self._run_services)

    def _register_resource(self, name: str) -> None:
        operator, pipeline, declared = self.operator, self.pipelines[name], self.box.spec.crds[name]
        cls = self._own[pipeline.gvk]
        operator.reconciles(cls, workers=declared.reconcile.workers, timeout=pipeline.reconcile_timeout)(
            lambda owner, ctx: self._reconcile(name, ctx)
        )
        first, *others = pipeline.finalizers

        def is_needed(owner: Object) -> bool:
            return self.pipelines[name].needs_finalizers(owner)

        register = operator.finalizes(cls, name=first, others=others, is_needed=is_needed)
        register(lambda owner, ctx: self._finalize(name, ctx))
        if pipeline.validation.unique_fields:
            self._index_unique_fields(name, cls)
        self._index_owner_label(pipeline)
        operator.uses(cls, *READ)
        for gvk, verbs in list_uses(self.box, declared):
            operator.uses(self._own.get(gvk, gvk), *verbs)

    def _index_unique_fields(self, name: str, cls: type[UnstructuredResource]) -> None:
        """Find who has a value, and wake who was denied for it when that changes."""
        operator, gvk = self.operator, find_definition(cls).gvk
        for path in sorted(self.pipelines[name].validation.unique_fields):
            operator.index(gvk, format_index_name(path))(build_index_function(lambda: self.pipelines[name], path))
        operator.index(gvk, _DENIED)(_list_denied_values)

        @operator.watches(gvk, requeues=cls, when=generation_changed)
        def list_denied(change: Change) -> Iterable[ObjectKey]:
            return change.list_keys_by_index(gvk, _DENIED, "True")

    def _index_owner_label(self, pipeline: Pipeline) -> None:
        """Find the objects of an owner by its label alone, of the kinds of which each pass lists them."""
        name, values_of = label_index(OWNER_UID)
        for gvk in pipeline.groups.listed_kinds:
            if (gvk, name) not in self.operator.registered.indexes:
                self.operator.index(gvk, name)(values_of)

    async def _reconcile(self, name: str, ctx: OwnerContext) -> Result | None:
        async with self._box_reconciler(name, ctx) as (one, run):
            if run is None:
                return await one.reconcile()
            waiting = run.describe_unmet(name, ctx.owner_key)
            if waiting:
                await one.report_waiting(waiting)
                return Result(requeue_after=one.state.pipeline.resync)
            began = ctx.clock.monotonic()
            try:
                result = await one.reconcile()
            except asyncio.CancelledError:
                # Who has cancelled it says nothing to us: that the time is over, the clock does.
                seconds = ctx.clock.monotonic() - began
                if seconds >= one.state.pipeline.reconcile_timeout.total_seconds():
                    run.record_reconcile(
                        name, ctx.owner_key, BoxReconcileResult.ERROR, f"it was not done after {seconds:.0f} s"
                    )
                raise
            except DeniedError as error:
                run.record_reconcile(name, ctx.owner_key, BoxReconcileResult.DENIED, str(error))
                raise
            except Exception as error:
                run.record_reconcile(name, ctx.owner_key, BoxReconcileResult.ERROR, format_error(error))
                raise
            finally:
                violations = one.state.violations
                if violations is not None and run.metrics is not None:
                    denied, warned = bool(violations.denied), bool(violations.warned)
                    run.metrics.record_validation(name, denied=denied, warned=warned)
            is_denied = isinstance(one.state.failure, DeniedError)
            run.record_reconcile(
                name, ctx.owner_key, BoxReconcileResult.DENIED if is_denied else BoxReconcileResult.SUCCESS
            )
            return result

    async def _finalize(self, name: str, ctx: OwnerContext) -> Result | None:
        async with self._box_reconciler(name, ctx) as (one, _):
            return await one.finalize()

    @asynccontextmanager
    async def _box_reconciler(self, name: str, ctx: OwnerContext) -> AsyncIterator[tuple[BoxReconciler, BoxRun | None]]:
        """The pass with the pipeline of this moment."""
        pipeline = self.pipelines[name]
        run = None if ctx.run is None else self._runs.get(ctx.run)
        if ctx.run is not None and run is not None:
            figures = run.metrics
            yield (
                BoxReconciler(
                    pipeline,
                    ctx,
                    caller=run.caller,
                    entropy=ctx.run.entropy,
                    is_unique=run.build_uniqueness_check(pipeline, ctx.owner),
                    foreign_conditions=run.find_foreign_conditions(name, ctx.owner_uid),
                    on_step=(lambda *_: None) if figures is None else (lambda *told: figures.record_step(name, *told)),
                ),
                run,
            )
            return
        entropy = SystemEntropy()
        async with DryRunCaller(clock=ctx.clock, entropy=entropy) as caller:
            is_unique = await build_cluster_uniqueness_check(ctx.cluster, pipeline, ctx.owner)
            yield (
                BoxReconciler(
                    pipeline, ctx, caller=caller, entropy=entropy, is_unique=is_unique, foreign_conditions=set()
                ),
                None,
            )

    @asynccontextmanager
    async def _run_services(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._owns_pool:
                stack.push_async_callback(self.pool.close)
            caller = await stack.enter_async_context(self._make_caller(run.clock, run.entropy))
            self._runs[run] = BoxRun(self.box, self.pipelines, run, process, caller)
            stack.callback(self._runs.pop, run, None)
            if self._file is not None:
                reloader = BoxReloader(self, self._file)
                await stack.enter_async_context(background_task(reloader.watch(run.clock), name=f"watch {self._file}"))
            yield


def _build_operator_name(box: OperatorBox) -> str:
    """The box's name, as far as it can be part of others: those of Leases, roles, webhooks."""
    return box.metadata.name.replace(".", "-")[:63].rstrip("-")


def _list_denied_values(obj: Object) -> list[str]:
    condition = find_condition(obj, VALIDATION_FAILED)
    return [] if condition is None else [condition.status]
