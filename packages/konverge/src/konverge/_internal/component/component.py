"""The component: an immutable value that groups resources and reports them as one condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from konverge._internal.component.component_spec import ComponentSpec
from konverge._internal.component.condition_reason import ConditionReason
from konverge._internal.component.condition_rules import read_generation
from konverge._internal.component.data_flow import DataEdge, build_data_topology, fill_cells
from konverge._internal.component.desired_object import render_desired
from konverge._internal.component.engine import ComponentReconcile
from konverge._internal.component.error_wrapping import wrap_errors
from konverge._internal.component.reconcile_context import ReconcileContext
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.kube import Condition, Object, find_condition
from konverge._internal.primitives.resource_protocol import Resource
from konverge.errors import ReconcileError

__all__ = ["Component"]


@dataclass(frozen=True, slots=True)
class Component(ComponentSpec):
    """A feature of a custom resource; made by `ComponentBuilder`.

    `reconcile` can be called any number of times and with different contexts: the value keeps no state between calls.
    """

    async def reconcile(self, ctx: ReconcileContext) -> Condition:
        """Run the seven steps of the specification ("Reconciliation Lifecycle") and stage the condition on the owner.

        `ReconcileContext.flush_status` writes the status, once for all components. If a grace period is running, the
        context gets a request for a requeue at its end.

        Raises:
            konverge.errors.ReconcileError: A step failed; the condition reports the error already.
            asyncio.CancelledError: The reconcile was cancelled; some objects may have been written, each completely.
        """
        if ctx.runner is not None:
            return await ctx.runner(self, ctx)
        return await ComponentReconcile(self, ctx).run()

    def condition(self, owner: Object) -> Condition:
        """Return the component's condition on the owner; with reason ``Unknown`` before the first reconcile."""
        condition = find_condition(owner, self.condition_type)
        if condition is not None:
            return condition
        return Condition(
            self.condition_type,
            ConditionReason.UNKNOWN.condition_status,
            ConditionReason.UNKNOWN,
            "Component has not been reconciled yet.",
            read_generation(owner),
        )

    def data_topology(self) -> tuple[DataEdge, ...]:
        """Return the producers and readers of each data cell, in order of the first producer."""
        return build_data_topology(self.entries)

    def find_resource(self, identity: str) -> Resource | None:
        """Return the registered resource with that identity and any treatment; None if there is none.

        Of an object that is read and managed, it is the managed resource.
        """
        matching = (entry for entry in self.entries if entry.identity == identity and not entry.is_managed_later)
        return next((entry.resource for entry in matching), None)

    def preview(self, *, data: Mapping[str, Any] | None = None) -> list[Object]:
        """Render the desired objects of all managed resources in registration order, without a cluster.

        Guards are not evaluated and no resource is suspended (specification, "Previewing desired state").

        Args:
            data: Temporary values of data cells by name; afterwards the cells have their earlier values.

        Raises:
            konverge.errors.ConfigurationError: A name is not that of a cell of this component.
            konverge.errors.KonvergeError: A resource cannot be constructed or rendered, or renders no object.
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
        """Return the names of all mutations of managed resources, each once, in order of registration."""
        return self._list_mutations(lambda resource: resource.registered_mutations())

    def firing_set(self) -> tuple[str, ...]:
        """Return the names of the mutations whose gate is on."""
        return self._list_mutations(lambda resource: resource.firing_set())

    def _list_mutations(self, names_of: Callable[[Resource], tuple[str, ...]]) -> tuple[str, ...]:
        managed = (entry.resource for entry in self.entries if entry.treatment.mode is ResourceMode.MANAGED)
        return tuple(dict.fromkeys(name for resource in managed for name in names_of(resource)))
