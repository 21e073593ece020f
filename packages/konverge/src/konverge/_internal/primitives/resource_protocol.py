"""The protocol between the engine and a resource: lifecycle results, and the methods of every primitive.

A primitive is a value. It renders its desired object and judges a live one. It sends no requests and keeps no state
between calls, so the same component value can be reconciled, previewed and tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.primitives.data_cells import Data
from konverge._internal.primitives.value_generation import ValueGeneration

__all__ = [
    "READY",
    "UNBLOCKED",
    "Convergence",
    "ConvergingStatus",
    "Grace",
    "GraceStatus",
    "Guard",
    "GuardResult",
    "GuardStatus",
    "Operation",
    "Resource",
    "Suspension",
    "SuspensionStatus",
    "blocked",
    "handles_secret",
]


class Operation(StrEnum):
    """The effect of this reconcile on the object, according to the server's response."""

    CREATED = "Created"
    UPDATED = "Updated"
    NONE = "None"


class ConvergingStatus(StrEnum):
    """Converging status: the three families of the specification ("Status Model") and the blocked guard."""

    HEALTHY = "Healthy"
    CREATING = "Creating"
    UPDATING = "Updating"
    SCALING = "Scaling"
    FAILING = "Failing"
    OPERATIONAL = "Operational"
    OPERATION_PENDING = "OperationPending"
    OPERATION_FAILING = "OperationFailing"
    COMPLETED = "Completed"
    TASK_RUNNING = "TaskRunning"
    TASK_PENDING = "TaskPending"
    TASK_FAILING = "TaskFailing"
    BLOCKED = "Blocked"

    @property
    def is_ready(self) -> bool:
        """True if there is nothing left to wait for."""
        return self in READY


READY = frozenset({ConvergingStatus.HEALTHY, ConvergingStatus.OPERATIONAL, ConvergingStatus.COMPLETED})
"""The ready status of each family: there is nothing left to wait for."""


class GraceStatus(StrEnum):
    """Severity of a resource that has not converged after the grace period."""

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    DOWN = "Down"


class SuspensionStatus(StrEnum):
    """Progress of the suspension of a resource."""

    PENDING_SUSPENSION = "PendingSuspension"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"


class GuardStatus(StrEnum):
    """Status of a guard. ``Unblocked`` is a signal to the engine and never appears in a condition."""

    BLOCKED = "Blocked"
    UNBLOCKED = "Unblocked"


@dataclass(frozen=True, slots=True)
class Convergence:
    """Converging status of a resource and its reason."""

    status: ConvergingStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grace:
    """Severity of a resource after the grace period and its reason."""

    status: GraceStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suspension:
    """Progress of a resource's suspension and its reason."""

    status: SuspensionStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GuardResult:
    """Status of a guard and, if it is blocked, the reason."""

    status: GuardStatus
    reason: str = ""


UNBLOCKED = GuardResult(GuardStatus.UNBLOCKED)


def blocked(reason: str) -> GuardResult:
    """Return a blocked result with its reason."""
    return GuardResult(GuardStatus.BLOCKED, reason)


Guard = Callable[[Object], GuardResult]
"""A precondition: gets a copy of the resource's desired object (baseline, before mutations) and returns whether the
engine may apply it."""


class Resource(Protocol):
    """One object of a component, in the view of the engine.

    A lifecycle result of None means that the resource has no such handler. A static resource is ready once it exists. A
    resource without a grace handler has no grace status. Suspension does not change a resource without its handlers.
    """

    @property
    def gvk(self) -> GroupVersionKind:
        """The object's group, version and kind."""

    @property
    def key(self) -> ObjectKey:
        """The object's namespace and name."""

    @property
    def identity(self) -> str:
        """``<apiVersion>/<kind>/<namespace>/<name>``, without the namespace if the object is cluster-scoped."""

    @property
    def errors(self) -> tuple[str, ...]:
        """The validation errors of the value, one sentence each; the component's builder reports all at once."""

    @property
    def produces(self) -> tuple[Data[Any], ...]:
        """The data cells that its extractors fill."""

    @property
    def requires(self) -> tuple[Data[Any], ...]:
        """The data cells that it requires; it is blocked while one is empty."""

    @property
    def optional_data(self) -> tuple[Data[Any], ...]:
        """The data cells that it reads if they are set."""

    @property
    def recreates(self) -> bool:
        """True if the object is deleted and created again when the server rejects a change of an immutable field."""

    @property
    def holds_secret(self) -> bool:
        """True if the object, of any kind, contains values of a Secret that were available when it was built."""

    @property
    def guards_values(self) -> bool:
        """True if the object contains values that are made once.

        Each request with such values names the version that was read: of two requests with different values, the
        server accepts only one.
        """

    @property
    def decided_on(self) -> str | None:
        """The version of the object on which the decision to make values is based; empty for an absent object.

        The engine writes the values only into that version. None if the engine itself decides.
        """

    @property
    def generation(self) -> ValueGeneration | None:
        """The part that makes values once; None for an object without such values."""

    @property
    def metrics_identifier(self) -> str:
        """The name of the resource in metrics, the same for all owners."""

    def check_guard(self) -> GuardResult:
        """Call the guard with a copy of the baseline (before mutations); without a guard, return `UNBLOCKED`."""

    @property
    def is_suspendable(self) -> bool:
        """True if suspension has an effect on this resource."""

    @property
    def deletes_on_suspend(self) -> bool:
        """True if suspension ends in the deletion of the object."""

    def render(self, *, suspended: bool = False) -> Object:
        """Return a new desired object with every mutation whose gate is enabled, in order; suspended on request.

        Raises:
            konverge.errors.KonvergeError: A gate or a mutation failed.
        """

    def suspend(self, obj: Object) -> Object:
        """Apply only the edits of suspension to this object, in place, and return it.

        The object has the resource's kind and name.
        """

    def extract(self, live: Object) -> None:
        """Call the extractors of the resource with a private copy of the live object, in order."""

    def converging_status(self, live: Object, operation: Operation) -> Convergence | None:
        """Return the converging status of the live object; None for a static resource."""

    def grace_status(self, live: Object) -> Grace | None:
        """Return the severity after the grace period; None if the resource has no grace handler."""

    def suspension_status(self, live: Object) -> Suspension:
        """Return the progress of the suspension."""

    def registered_mutations(self) -> tuple[str, ...]:
        """Return the names of all mutations, in order of registration."""

    def firing_set(self) -> tuple[str, ...]:
        """Return the names of the mutations whose gate is enabled."""


def handles_secret(resource: Resource) -> bool:
    """Return whether the resource handles values of a Secret: its own, inserted ones, or those of a cell.

    Errors of its functions may quote such a value, and so may the response of a server that rejects the object.
    """
    cells = (*resource.requires, *resource.optional_data)
    return resource.gvk.is_secret or resource.holds_secret or any(cell.holds_secret for cell in cells)
