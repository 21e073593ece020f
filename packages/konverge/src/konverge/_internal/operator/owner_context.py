"""The context of author functions: that of components, with access to the whole cluster and to the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from konverge._internal.component import Component, ReconcileContext, delete_in_waves
from konverge._internal.crd.status_class import RESERVED_FIELDS, find_status_class
from konverge._internal.operator.reconciled_components import ReconciledComponents
from konverge._internal.runtime import CachedClient, Process, Result
from konverge.clock import Clock, Entropy
from konverge.errors import ConfigurationError

if TYPE_CHECKING:
    from konverge._internal.runtime.event_recorder import ClusterEventRecorder
    from konverge._internal.runtime.observability import Metrics

__all__ = ["Companion", "OperatorRun", "OwnerContext"]


@dataclass(frozen=True, eq=False)
class OperatorRun:
    """One run of an operator; the key for the state of a run, because an operator can run twice at the same time.

    Args:
        clock: The time.
        entropy: The randomness.
        metrics: The metrics of the run; None without metrics.
        sections: Additional sections of the debug page, by title: rows of a table, read in the event loop.
        events: The recorder of events; None records none.
    """

    clock: Clock
    entropy: Entropy
    metrics: Metrics | None = None
    sections: dict[str, Callable[[], list[dict[str, Any]]]] = field(default_factory=dict)
    events: ClusterEventRecorder | None = None


Companion: TypeAlias = Callable[[OperatorRun, Process], AbstractAsyncContextManager[object]]
"""A background service that runs from before the first list of owners until after the last reconcile."""


@dataclass
class OwnerContext(ReconcileContext):
    """The context of a reconcile that the runtime runs."""

    run: OperatorRun | None = None
    """The run of the operator; None without a run, as in a dry run."""
    owner_class: type[Any] | None = None
    """The class of the owner; None for an owner without one."""
    wave_finalizer: str = field(default="", repr=False)
    deletion_waits_for: str = field(default="", init=False, repr=False)

    @property
    def components(self) -> ReconciledComponents:
        """The components that this reconcile has run so far, with their conditions and live objects.

        ::

            primary = ctx.components["primary"].find("apps/v1/StatefulSet")
        """
        return ReconciledComponents(self)

    def stage_status(self, status: object) -> None:
        """Set the fields of the owner's status in memory, like `stage` for conditions; one write contains both.

        The fields of the class are complete: a field that is None, or absent in the JSON of the status, is removed.
        Fields that the class does not declare stay, at any depth (`crd.undeclared_fields`). ``observedGeneration`` is
        set as well.

        Args:
            status: An instance of the class of the owner's field ``status``.

        Raises:
            konverge.errors.ConfigurationError: The owner's class has no field ``status``, or the value is not an
                instance of its class, has an attribute that is not a field, or has no JSON. Nothing is set.
        """
        status_class = None if self.owner_class is None else find_status_class(self.owner_class)
        if status_class is None:
            raise ConfigurationError(
                f"{self.owner_gvk.kind}: expected a class with a field status, found none; declare one with a default, "
                "as in status: AppStatus = field(default_factory=AppStatus)"
            )
        fields = status_class.encode(status, self.owner.get("status"))
        if status_class.names and self.owner_generation is not None:
            fields = {"observedGeneration": self.owner_generation, **fields}
        self.stage_fields(fields, absent=status_class.names - fields.keys() - RESERVED_FIELDS)

    async def delete_in_waves(self, *components: Component) -> Result | None:
        """Delete the objects of the components in their waves, in a function of `Operator.finalizes`.

        ``manages`` does this by itself; the function of an owner with ``reconciles`` calls it::

            @operator.finalizes(Database)
            async def close(database: Database, ctx: OwnerContext) -> Result | None:
                return await ctx.delete_in_waves(server(database), storage(database))

        Args:
            *components: The components of the owner; a component that is left out has no waves.

        Returns:
            None when the objects of all waves are gone; a `Result` while the deletion waits, which the condition of
            the owner reports.

        Raises:
            konverge.errors.ConfigurationError: The owner is not being deleted.
            konverge.errors.ReconcileError: A request failed.
        """
        self.deletion_waits_for = await delete_in_waves(self, *components)
        return Result() if self.deletion_waits_for else None

    @property
    def cluster(self) -> CachedClient:
        """The client with all its verbs; reads come from shared caches, including own writes.

        ::

            pods = await ctx.cluster.list(POD, namespace=ctx.owner_key.namespace, labels={"app": app.metadata.name})
        """
        assert isinstance(self.client, CachedClient)
        return self.client
