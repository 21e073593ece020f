"""A box as an operator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from konverge.box.calls import Caller
from konverge.box.file import OperatorBox
from konverge.box.providers import ProviderPool
from konverge.box.running.at_work import BoxAtWork
from konverge.box.running.box_pass import BoxPass
from konverge.box.running.conditions import VALIDATION_FAILED
from konverge.box.running.definition import class_of
from konverge.box.running.health import PassResult
from konverge.box.running.order import DeniedError
from konverge.box.running.permissions import uses_of
from konverge.box.running.pipeline import Pipeline
from konverge.box.running.rehearsed_calls import RehearsingCaller
from konverge.box.running.reloading import BoxReloader
from konverge.box.running.run import BoxRun
from konverge.box.running.uniqueness import index_name, index_values, uniqueness_in
from konverge.box.steps.labels import OWNER_UID
from konverge.cache import label_index
from konverge.clock import Clock, Entropy, SystemEntropy
from konverge.crd import PlainResource, definition_of
from konverge.errors import describe
from konverge.kube import Object, ObjectKey, find_condition
from konverge.operator import READ, Change, Operator, OwnerContext, Result, generation_changed
from konverge.operator.context import OperatorRun
from konverge.runtime import Process
from konverge.runtime.beside import beside

__all__ = ["RunningBox", "box_operator"]

_DENIED = "konverge.dev/denied"


def box_operator(box: OperatorBox, *, file: Path | None = None, pool: ProviderPool | None = None) -> Operator:
    """The operator that a box is: one reconcile for each of its custom resources.

    Args:
        box: The box.
        file: Where it was read. It is looked at again and again while the operator runs, and when it has changed the
            box is another one. None for a box that stays as it is.
        pool: The providers; those of installed packages when not given.

    Raises:
        konverge.errors.KonvergeError: A step cannot be compiled, or no server would take a definition.
    """
    return RunningBox(box, file=file, pool=pool).operator


class RunningBox(BoxAtWork):
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
        self.operator = Operator(_operator_name(box))
        self._file = file
        self._own = {declared.resource.gvk: class_of(declared) for declared in box.spec.crds.values()}
        for name in box.spec.crds:
            self._register(name)
        self.operator.runs_beside(self._beside)

    def _register(self, name: str) -> None:
        operator, pipeline, declared = self.operator, self.pipelines[name], self.box.spec.crds[name]
        cls = self._own[pipeline.gvk]
        operator.reconciles(cls, workers=declared.reconcile.workers, timeout=pipeline.longest_pass)(
            lambda owner, ctx: self._reconcile(name, ctx)
        )
        first, *others = pipeline.finalizers

        def is_needed(owner: Object) -> bool:
            return self.pipelines[name].needs_finalizers(owner)

        register = operator.finalizes(cls, name=first, others=others, is_needed=is_needed)
        register(lambda owner, ctx: self._finalize(name, ctx))
        if pipeline.validation.unique_fields:
            self._index(name, cls)
        self._index_listed(pipeline)
        operator.uses(cls, *READ)
        for gvk, verbs in uses_of(self.box, declared):
            operator.uses(self._own.get(gvk, gvk), *verbs)

    def _index(self, name: str, cls: type[PlainResource]) -> None:
        """Find who has a value, and wake who was denied for it when that changes."""
        operator, gvk = self.operator, definition_of(cls).gvk
        for path in sorted(self.pipelines[name].validation.unique_fields):
            operator.index(gvk, index_name(path))(index_values(lambda: self.pipelines[name], path))
        operator.index(gvk, _DENIED)(_denied_values)

        @operator.watches(gvk, wakes=cls, when=generation_changed)
        def denied_ones(change: Change) -> Iterable[ObjectKey]:
            return change.by_index(gvk, _DENIED, "True")

    def _index_listed(self, pipeline: Pipeline) -> None:
        """Find the objects of an owner by its label alone, of the kinds of which each pass lists them."""
        name, values_of = label_index(OWNER_UID)
        for gvk in pipeline.groups.listed_kinds:
            if (gvk, name) not in self.operator.registered.indexes:
                self.operator.index(gvk, name)(values_of)

    async def _reconcile(self, name: str, ctx: OwnerContext) -> Result | None:
        async with self._pass(name, ctx) as (one, run):
            if run is None:
                return await one.reconcile()
            waiting = run.unmet(name, ctx.owner_key)
            if waiting:
                await one.wait(waiting)
                return Result(requeue_after=one.state.pipeline.resync)
            began = ctx.clock.monotonic()
            try:
                result = await one.reconcile()
            except asyncio.CancelledError:
                # Who has cancelled it says nothing to us: that the time is over, the clock does.
                seconds = ctx.clock.monotonic() - began
                if seconds >= one.state.pipeline.longest_pass.total_seconds():
                    run.passed(name, ctx.owner_key, PassResult.ERROR, f"it was not done after {seconds:.0f} s")
                raise
            except DeniedError as error:
                run.passed(name, ctx.owner_key, PassResult.DENIED, str(error))
                raise
            except Exception as error:
                run.passed(name, ctx.owner_key, PassResult.ERROR, describe(error))
                raise
            finally:
                violations = one.state.violations
                if violations is not None and run.figures is not None:
                    denied, warned = bool(violations.denied), bool(violations.warned)
                    run.figures.validated(name, denied=denied, warned=warned)
            is_denied = isinstance(one.state.failure, DeniedError)
            run.passed(name, ctx.owner_key, PassResult.DENIED if is_denied else PassResult.SUCCESS)
            return result

    async def _finalize(self, name: str, ctx: OwnerContext) -> Result | None:
        async with self._pass(name, ctx) as (one, _):
            return await one.finalize()

    @asynccontextmanager
    async def _pass(self, name: str, ctx: OwnerContext) -> AsyncIterator[tuple[BoxPass, BoxRun | None]]:
        """The pass with the pipeline of this moment."""
        pipeline = self.pipelines[name]
        run = None if ctx.run is None else self._runs.get(ctx.run)
        if ctx.run is not None and run is not None:
            figures = run.figures
            yield (
                BoxPass(
                    pipeline,
                    ctx,
                    caller=run.caller,
                    entropy=ctx.run.entropy,
                    is_unique=run.is_unique(pipeline, ctx.owner),
                    strangers=run.strangers(name, ctx.owner_uid),
                    stepped=(lambda *_: None) if figures is None else (lambda *told: figures.stepped(name, *told)),
                ),
                run,
            )
            return
        entropy = SystemEntropy()
        async with RehearsingCaller(clock=ctx.clock, entropy=entropy) as caller:
            is_unique = await uniqueness_in(ctx.cluster, pipeline, ctx.owner)
            yield (
                BoxPass(pipeline, ctx, caller=caller, entropy=entropy, is_unique=is_unique, strangers=set()),
                None,
            )

    @asynccontextmanager
    async def _beside(self, run: OperatorRun, process: Process) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._owns_pool:
                stack.push_async_callback(self.pool.close)
            caller = await stack.enter_async_context(self._make_caller(run.clock, run.entropy))
            self._runs[run] = BoxRun(self.box, self.pipelines, run, process, caller)
            stack.callback(self._runs.pop, run, None)
            if self._file is not None:
                reloader = BoxReloader(self, self._file)
                await stack.enter_async_context(beside(reloader.watch(run.clock), name=f"watch {self._file}"))
            yield


def _operator_name(box: OperatorBox) -> str:
    """The box's name, as far as it can be part of others: those of Leases, roles, webhooks."""
    return box.metadata.name.replace(".", "-")[:63].rstrip("-")


def _denied_values(obj: Object) -> list[str]:
    condition = find_condition(obj, VALIDATION_FAILED)
    return [] if condition is None else [condition.status]
