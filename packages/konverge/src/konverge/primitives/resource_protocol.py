"""What the engine asks of a resource: the lifecycle answers and the protocol that every primitive satisfies.

A primitive is a value. It renders its desired object and judges a live one; it never talks to a cluster and keeps
nothing between calls, so the same component value can be reconciled, previewed and tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.primitives.data_cells import Data

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
    """What the engine did to the object in this pass, judged by the server's answer."""

    CREATED = "Created"
    UPDATED = "Updated"
    NONE = "None"


class ConvergingStatus(StrEnum):
    """How far a resource is: the three families of the specification ("Status Model") and the blocked guard."""

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
        """Tell whether nothing is left to wait for."""
        return self in READY


READY = frozenset({ConvergingStatus.HEALTHY, ConvergingStatus.OPERATIONAL, ConvergingStatus.COMPLETED})
"""One status of each family says that nothing is left to wait for."""


class GraceStatus(StrEnum):
    """How bad it is that a resource has not converged when its grace is over."""

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    DOWN = "Down"


class SuspensionStatus(StrEnum):
    """How far a resource is on its way into suspension."""

    PENDING_SUSPENSION = "PendingSuspension"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"


class GuardStatus(StrEnum):
    """A guard's verdict. ``Unblocked`` is a signal to the engine and never shows in a condition."""

    BLOCKED = "Blocked"
    UNBLOCKED = "Unblocked"


@dataclass(frozen=True, slots=True)
class Convergence:
    """A resource's converging status and why."""

    status: ConvergingStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grace:
    """A resource's severity after the grace period and why."""

    status: GraceStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Suspension:
    """A resource's progress into suspension and why."""

    status: SuspensionStatus
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GuardResult:
    """A guard's verdict and, when blocked, what it waits for."""

    status: GuardStatus
    reason: str = ""


UNBLOCKED = GuardResult(GuardStatus.UNBLOCKED)


def blocked(reason: str) -> GuardResult:
    """A blocked verdict that says what it waits for."""
    return GuardResult(GuardStatus.BLOCKED, reason)


Guard = Callable[[Object], GuardResult]
"""A precondition: gets a copy of the resource's desired object (baseline, before mutations), answers whether it may be
applied."""


class Resource(Protocol):
    """One object of a component, as the engine sees it.

    Lifecycle answers of None mean that the resource does not take part: a static resource is ready by existing, a
    resource without a grace handler is not graded, one that cannot be suspended is left alone.
    """

    @property
    def gvk(self) -> GroupVersionKind:
        """The object's type."""

    @property
    def key(self) -> ObjectKey:
        """The object's namespace and name."""

    @property
    def identity(self) -> str:
        """``<apiVersion>/<kind>/<namespace>/<name>``, without the namespace when cluster-scoped."""

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong with the value itself, one sentence each; the component's builder reports them all at once."""

    @property
    def produces(self) -> tuple[Data[Any], ...]:
        """The data cells that its extractors fill."""

    @property
    def requires(self) -> tuple[Data[Any], ...]:
        """The data cells without which it is blocked."""

    @property
    def optional_data(self) -> tuple[Data[Any], ...]:
        """The data cells that it reads if they hold something."""

    @property
    def recreates(self) -> bool:
        """Tell whether the object is deleted and made anew when the server refuses to change an immutable field."""

    @property
    def holds_secret(self) -> bool:
        """Tell whether the object, of whatever kind, has values of a Secret in it that were known when it was built."""

    @property
    def metrics_identifier(self) -> str:
        """What metrics call it, the same for all owners."""

    def check_guard(self) -> GuardResult:
        """Ask the resource's guard with a copy of its baseline object (before mutations); unblocked without one."""

    @property
    def is_suspendable(self) -> bool:
        """Tell whether suspension concerns this resource at all."""

    @property
    def deletes_on_suspend(self) -> bool:
        """Tell whether suspension ends in the object's deletion."""

    def render(self, *, suspended: bool = False) -> Object:
        """A fresh desired object with every mutation whose gate is on, in order; suspended on request.

        Raises:
            konverge.errors.KonvergeError: A gate or a mutation failed.
        """

    def suspend(self, obj: Object) -> Object:
        """This object with the edits of suspension and no others, in place; it is of the resource's kind and name."""

    def extract(self, live: Object) -> None:
        """Hand a private copy of the live object to the resource's data extractors, in order."""

    def converging_status(self, live: Object, operation: Operation) -> Convergence | None:
        """Judge the live object; None for a static resource."""

    def grace_status(self, live: Object) -> Grace | None:
        """Grade the live object after the grace period; None when the resource has no such handler."""

    def suspension_status(self, live: Object) -> Suspension:
        """How far the live object is suspended."""

    def registered_mutations(self) -> tuple[str, ...]:
        """The names of all mutations, in order of registration."""

    def firing_set(self) -> tuple[str, ...]:
        """The names of those whose gate is on."""


def handles_secret(resource: Resource) -> bool:
    """Tell whether the resource handles values of a Secret: its own, those in it, those of a cell that a Secret fills.

    Errors of its functions may quote one, and so may the server that refuses the object.
    """
    cells = (*resource.requires, *resource.optional_data)
    return resource.gvk.is_secret or resource.holds_secret or any(cell.holds_secret for cell in cells)
