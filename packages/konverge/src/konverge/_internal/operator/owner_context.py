"""The context of author functions: that of components, with access to the whole cluster and to the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from konverge._internal.component import Component, ReconcileContext, delete_in_waves
from konverge._internal.crd.status_class import RESERVED_FIELDS, find_status_class
from konverge._internal.kube import Condition, Object
from konverge._internal.operator.annotated_conditions import format_conditions, show_conditions
from konverge._internal.operator.reconciled_components import ReconciledComponents
from konverge._internal.runtime import CachedClient, Process, Result
from konverge.clock import Clock, Entropy
from konverge.errors import ConfigurationError, NotFoundError

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
    source: Object | None = field(default=None, repr=False)
    condition_annotation: str = field(default="", repr=False)
    wave_finalizer: str = field(default="", repr=False)
    finalizers: tuple[str, ...] = field(default=(), repr=False)
    deletion_waits_for: str = field(default="", init=False, repr=False)

    @property
    def owner_as_read(self) -> Object:
        """The owner as it was read; `owner` has only the conditions of this operator if the status is not its own."""
        return self.owner if self.source is None else self.source

    @property
    def components(self) -> ReconciledComponents:
        """The components that this reconcile has run so far, with their conditions and live objects.

        ::

            primary = ctx.components["primary"].find("apps/v1/StatefulSet")
        """
        return ReconciledComponents(self)

    def describe_missing_finalizer(self) -> str:
        """Describe why no finalizer will delete the owner's components in waves; empty if one does, or if not known."""
        present = self.owner["metadata"].get("finalizers") or ()
        if not self.wave_finalizer or any(name in present for name in (self.wave_finalizer, *self.finalizers)):
            return ""
        return (
            "it has deletion waves, and the owner has no finalizer of this operator: expected a function of "
            "operator.finalizes() that returns await ctx.delete_in_waves(...). operator.manages() needs none"
        )

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
        if self.source is not None:
            raise ConfigurationError(
                f"{self.owner_gvk.kind}: the status belongs to another controller: expected only conditions, which are "
                "written to an annotation; report other values in an object of your own"
            )
        status_class = None if self.owner_class is None else find_status_class(self.owner_class)
        if status_class is None:
            raise ConfigurationError(
                f"{self.owner_gvk.kind}: expected a class with a field status, found none; declare one with a default, "
                "as in status: AppStatus = field(default_factory=AppStatus)"
            )
        fields = status_class.encode(status, self.owner.get("status"))
        complete = partial(status_class.complete_fields, status_class.encode_fields(status))
        if status_class.names and self.owner_generation is not None:
            fields = {"observedGeneration": self.owner_generation, **fields}
        absent = status_class.names - fields.keys() - RESERVED_FIELDS
        self.stage_fields(fields, absent=absent, complete=complete)

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

    def stage(self, condition: Condition) -> Condition:
        """Set a condition on the owner in memory (`ReconcileContext.stage`)."""
        if self.source is not None:
            # The write of the annotation can change the generation, as it does for a Deployment.
            condition = replace(condition, observed_generation=None)
        return super().stage(condition)

    def _view_owner(self, owner: Object) -> Object:
        return owner if self.source is None else show_conditions(owner, self.condition_annotation)

    async def _write_status(self) -> bool:
        """Write the conditions to the annotation if the status belongs to another controller."""
        if self.source is None:
            return await super()._write_status()
        text = format_conditions((self.owner.get("status") or {}).get("conditions") or [])
        metadata = {
            # Another writer of the annotation, such as a timer, must not lose its conditions.
            "resourceVersion": self.owner["metadata"]["resourceVersion"],
            "annotations": {self.condition_annotation: text},
        }
        try:
            written = await self.cluster.patch(
                self.owner_gvk, self.owner_key, {"metadata": metadata}, patch_type="merge"
            )
        except NotFoundError:
            return False
        self._record_written(written)
        return True

    @property
    def cluster(self) -> CachedClient:
        """The client with all its verbs; reads come from shared caches, including own writes.

        ::

            pods = await ctx.cluster.list(POD, namespace=ctx.owner_key.namespace, labels={"app": app.metadata.name})
        """
        assert isinstance(self.client, CachedClient)
        return self.client
