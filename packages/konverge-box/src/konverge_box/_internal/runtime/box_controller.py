"""The controllers of a box: how its custom resources join the framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from konverge._internal.cache import label_index
from konverge._internal.crd import UnstructuredResource, find_definition
from konverge._internal.kube import Object, ObjectKey, find_condition
from konverge._internal.operator import READ, Change, Operator, OwnerContext, Result, generation_changed
from konverge._internal.operator.owner_context import OperatorRun
from konverge._internal.runtime import Process
from konverge._internal.runtime.background import background_task
from konverge.clock import Clock, Entropy
from konverge_box._internal.calls import Caller
from konverge_box._internal.file import KINDS, OperatorBox
from konverge_box._internal.providers import ProviderPool
from konverge_box._internal.runtime.active_box import ActiveBox
from konverge_box._internal.runtime.box_conditions import VALIDATION_FAILED
from konverge_box._internal.runtime.box_dry_run import BoxDryRun
from konverge_box._internal.runtime.box_permissions import list_uses
from konverge_box._internal.runtime.box_reloader import BoxReloader
from konverge_box._internal.runtime.box_run import BoxRun
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.runtime.resource_class import build_resource_class
from konverge_box._internal.runtime.uniqueness import build_index_function, format_index_name
from konverge_box._internal.steps.labels import OWNER_UID

__all__ = ["BoxController", "build_box_operator"]

_DENIED = "konverge.dev/denied"


def build_box_operator(box: OperatorBox, *, file: Path | None = None, pool: ProviderPool | None = None) -> Operator:
    """Build the operator of a box, with one reconcile function for each of its custom resources.

    Args:
        box: The box.
        file: The file of the box. The running operator polls it and takes over changes. None for a box that stays
            the same.
        pool: The providers (default: those of installed packages).

    Raises:
        konverge.errors.KonvergeError: A step cannot be compiled, or no server would accept a definition.
    """
    return BoxController(box, file=file, pool=pool).operator


class BoxController:
    """The controllers of a box. They reconcile with the pipelines of the box that is active at the moment.

    Args:
        box: The box at the beginning.
        file: The file of the box; None for a box that stays the same.
        pool: The providers (default: those of installed packages).
        make_caller: Creates the caller that sends the external calls of a run.

    Attributes:
        active: The active box, its pipelines and its runs.
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
        self.active = ActiveBox(box, pool or ProviderPool())
        self.operator = Operator(_build_operator_name(box))
        self._owns_pool = pool is None
        self._make_caller = make_caller
        self._file = file
        self._classes = {declared.resource.gvk: build_resource_class(declared) for declared in box.spec.crds.values()}
        for name in box.spec.crds:
            self._register_resource(name)
        self.operator.registered.assumed_kinds |= {
            resource.gvk: KINDS[resource.kind].namespaced
            for declared in box.spec.crds.values()
            for resource in declared.resources
            if resource.gvk not in self._classes
        }
        self.operator.registered.assumed_kinds |= {
            declared.resource.gvk: declared.resource.scope == "Namespaced"
            for declared in box.spec.crds.values()
            if declared.resource.schema is None
        }
        self.operator.runs_in_background(self._run_services)

    def _register_resource(self, name: str) -> None:
        operator, active = self.operator, self.active
        pipeline, declared = active.pipelines[name], active.box.spec.crds[name]
        cls = self._classes[pipeline.gvk]
        # The steps report their errors themselves.
        operator.reconciles(
            cls, workers=declared.reconcile.workers, timeout=pipeline.reconcile_timeout, reports_errors=False
        )(lambda owner, ctx: self._reconcile(name, ctx))
        first, *others = pipeline.finalizers

        def is_needed(owner: Object) -> bool:
            return active.pipelines[name].needs_finalizers(owner)

        register = operator.finalizes(cls, name=first, others=others, is_needed=is_needed)
        register(lambda owner, ctx: self._finalize(name, ctx))
        if pipeline.validation.unique_fields:
            self._index_unique_fields(name, cls)
        self._index_owner_label(pipeline)
        operator.uses(cls, *READ)
        for gvk, verbs in list_uses(active.box, declared):
            operator.uses(self._classes.get(gvk, gvk), *verbs)

    def _index_unique_fields(self, name: str, cls: type[UnstructuredResource]) -> None:
        """Index the unique fields; queue the denied owners when a value can have become free."""
        operator, pipelines, gvk = self.operator, self.active.pipelines, find_definition(cls).gvk
        for path in sorted(pipelines[name].validation.unique_fields):
            function = build_index_function(lambda: self.active.pipelines[name], path)
            operator.index(gvk, format_index_name(path))(function)
        operator.index(gvk, _DENIED)(_list_denied_values)

        @operator.watches(gvk, requeues=cls, when=generation_changed)
        def list_denied(change: Change) -> Iterable[ObjectKey]:
            return change.list_keys_by_index(gvk, _DENIED, "True")

    def _index_owner_label(self, pipeline: Pipeline) -> None:
        """Index the owner's label on the kinds whose objects each reconcile lists by it."""
        name, values_of = label_index(OWNER_UID)
        for gvk in pipeline.groups.listed_kinds:
            if (gvk, name) not in self.operator.registered.indexes:
                self.operator.index(gvk, name)(values_of)

    async def _reconcile(self, name: str, ctx: OwnerContext) -> Result | None:
        return await self._choose_runner(ctx).reconcile(self.active.pipelines[name], ctx)

    async def _finalize(self, name: str, ctx: OwnerContext) -> Result | None:
        return await self._choose_runner(ctx).finalize(self.active.pipelines[name], ctx)

    def _choose_runner(self, ctx: OwnerContext) -> BoxRun | BoxDryRun:
        return self.active.find_run(ctx.run) or BoxDryRun()

    @asynccontextmanager
    async def _run_services(self, operator_run: OperatorRun, process: Process) -> AsyncIterator[None]:
        active, clock = self.active, operator_run.clock
        async with AsyncExitStack() as stack:
            if self._owns_pool:
                stack.push_async_callback(active.pool.close)
            caller = await stack.enter_async_context(self._make_caller(clock, operator_run.entropy))
            indexes = self.operator.registered.indexes
            run = BoxRun(active.box, active.pipelines, operator_run, process, caller, indexes)
            stack.enter_context(active.register_run(operator_run, run))
            if self._file is not None:
                reloader = BoxReloader(active, self._file)
                await stack.enter_async_context(background_task(reloader.watch(clock), name=f"watch {self._file}"))
            yield


def _build_operator_name(box: OperatorBox) -> str:
    """Return the box's name in a form that names of Leases, roles and webhooks can contain."""
    return box.metadata.name.replace(".", "-")[:63].rstrip("-")


def _list_denied_values(obj: Object) -> list[str]:
    condition = find_condition(obj, VALIDATION_FAILED)
    return [] if condition is None else [condition.status]
