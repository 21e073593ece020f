"""The component: an immutable value that groups resources and reports them as one condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from konverge.component.component_spec import ComponentSpec
from konverge.component.condition_reason import ConditionReason
from konverge.component.condition_rules import read_generation
from konverge.component.data_flow import DataEdge, build_data_topology, fill_cells
from konverge.component.desired_object import render_desired
from konverge.component.engine import ComponentReconcile
from konverge.component.error_wrapping import wrap_errors
from konverge.component.reconcile_context import ReconcileContext
from konverge.component.reporting import ResourceObserver
from konverge.component.resource_options import ResourceMode
from konverge.errors import ReconcileError
from konverge.kube import Condition, Object, find_condition
from konverge.primitives.resource_protocol import Resource

__all__ = ["Component", "ReconcileObserver"]


@dataclass(frozen=True, slots=True)
class Component(ComponentSpec):
    """A feature of a custom resource; made by `ComponentBuilder`.

    `reconcile` may be called any number of times, also for different passes: the value keeps nothing between them.
    """

    async def reconcile(self, ctx: ReconcileContext) -> Condition:
        """Run the seven steps of the specification ("Reconciliation Lifecycle") and stage the condition on the owner.

        The status is not written: `ReconcileContext.flush_status` does that, once for all components. When the grace
        period will run out, the context is asked to wake the owner at that moment.

        Raises:
            konverge.errors.ReconcileError: A step failed; the condition says so already.
            asyncio.CancelledError: The pass was stopped; some objects may have been written, none half.
        """
        observer = ctx.observer
        # None is looked for first: there is nearly never an observer, and isinstance of a protocol takes microseconds.
        if observer is not None and isinstance(observer, ReconcileObserver):
            return await observer.reconcile(self, ctx)
        return await ComponentReconcile(self, ctx).run()

    def condition(self, owner: Object) -> Condition:
        """The component's condition on the owner; one of reason ``Unknown`` before the first reconcile."""
        found = find_condition(owner, self.condition_type)
        if found is not None:
            return found
        return Condition(
            self.condition_type,
            ConditionReason.UNKNOWN.condition_status,
            ConditionReason.UNKNOWN,
            "Component has not been reconciled yet.",
            read_generation(owner),
        )

    def data_topology(self) -> tuple[DataEdge, ...]:
        """How each data cell is used, in order of its first producer."""
        return build_data_topology(self.entries)

    def find_resource(self, identity: str) -> Resource | None:
        """The registered resource of that identity (managed, read-only or to be deleted), None without."""
        return next((entry.resource for entry in self.entries if entry.identity == identity), None)

    def preview(self, *, data: Mapping[str, Any] | None = None) -> list[Object]:
        """The desired objects of all managed resources in registration order, rendered without a cluster.

        Guards are not asked and nothing is suspended (specification, "Previewing desired state").

        Args:
            data: What data cells hold meanwhile, by their names; afterwards they hold what they held before.

        Raises:
            konverge.errors.ConfigurationError: A name is not that of a cell of this component.
            konverge.errors.KonvergeError: A resource cannot be constructed or rendered, or renders nothing.
        """
        return copy_context().run(self._render_preview, data or {})

    def _render_preview(self, data: Mapping[str, Any]) -> list[Object]:
        if self.construction_errors:
            raise ReconcileError("; ".join(self.construction_errors))
        fill_cells(self.cells, data)
        previewed = []
        for entry in self.entries:
            if entry.treatment.mode is ResourceMode.MANAGED:
                with wrap_errors("failed to preview resource", entry.identity):
                    previewed.append(render_desired(entry.resource.render))
        return previewed

    def registered_mutations(self) -> tuple[str, ...]:
        """The names of all mutations of managed resources, each once, in order of registration."""
        return self._list_mutations(lambda resource: resource.registered_mutations())

    def firing_set(self) -> tuple[str, ...]:
        """The names of those whose gate is on."""
        return self._list_mutations(lambda resource: resource.firing_set())

    def _list_mutations(self, names_of: Callable[[Resource], tuple[str, ...]]) -> tuple[str, ...]:
        managed = (entry.resource for entry in self.entries if entry.treatment.mode is ResourceMode.MANAGED)
        return tuple(dict.fromkeys(name for resource in managed for name in names_of(resource)))


@runtime_checkable
class ReconcileObserver(ResourceObserver, Protocol):
    """Who looks on while components are reconciled, to tell afterwards why they say what they say."""

    async def reconcile(self, component: Component, ctx: ReconcileContext) -> Condition:
        """Run the pass of a component; called instead of the engine."""
