"""The component: an immutable value that groups resources and reports them as one condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from konverge.component import engine
from konverge.component.composition import Composition
from konverge.component.condition import generation_of
from konverge.component.context import ReconcileContext
from konverge.component.data_flow import DataEdge, data_topology, fill
from konverge.component.failure import failing
from konverge.component.options import Mode
from konverge.component.recording import ResourceObserver
from konverge.component.rendering import rendered
from konverge.component.status import Status
from konverge.errors import ReconcileError
from konverge.kube import Condition, Object, find_condition
from konverge.primitives.lifecycle import Resource

__all__ = ["Component", "PassObserver"]


@dataclass(frozen=True, slots=True)
class Component(Composition):
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
        if observer is not None and isinstance(observer, PassObserver):
            return await observer.reconcile(self, ctx)
        return await engine.reconcile(self, ctx)

    def condition(self, owner: Object) -> Condition:
        """The component's condition on the owner; one of reason ``Unknown`` before the first reconcile."""
        found = find_condition(owner, self.condition_type)
        if found is not None:
            return found
        return Condition(
            self.condition_type,
            Status.UNKNOWN.condition_status,
            Status.UNKNOWN,
            "Component has not been reconciled yet.",
            generation_of(owner),
        )

    def data_topology(self) -> tuple[DataEdge, ...]:
        """How each data cell is used, in order of its first producer."""
        return data_topology(self.entries)

    def resource(self, identity: str) -> Resource | None:
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
        return copy_context().run(self._preview, data or {})

    def _preview(self, data: Mapping[str, Any]) -> list[Object]:
        if self.failures:
            raise ReconcileError("; ".join(self.failures))
        fill(self.cells, data)
        previewed = []
        for entry in self.entries:
            if entry.treatment.mode is Mode.MANAGED:
                with failing("failed to preview resource", entry.identity):
                    previewed.append(rendered(entry.resource.desired))
        return previewed

    def registered_mutations(self) -> tuple[str, ...]:
        """The names of all mutations of managed resources, each once, in order of registration."""
        return self._mutations(lambda resource: resource.registered_mutations())

    def firing_set(self) -> tuple[str, ...]:
        """The names of those whose gate is on."""
        return self._mutations(lambda resource: resource.firing_set())

    def _mutations(self, names_of: Callable[[Resource], tuple[str, ...]]) -> tuple[str, ...]:
        managed = (entry.resource for entry in self.entries if entry.treatment.mode is Mode.MANAGED)
        return tuple(dict.fromkeys(name for resource in managed for name in names_of(resource)))


@runtime_checkable
class PassObserver(ResourceObserver, Protocol):
    """Who looks on while components are reconciled, to tell afterwards why they say what they say."""

    async def reconcile(self, component: Component, ctx: ReconcileContext) -> Condition:
        """Run the pass of a component; called instead of the engine."""
