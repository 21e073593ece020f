"""Reports of a reconcile besides the condition: protocols for events, metrics and an observer. None disables one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from konverge._internal.kube import Condition, Object
from konverge._internal.primitives.resource_protocol import Convergence, Suspension

__all__ = ["ApplyMetrics", "ConditionMetrics", "EventRecorder", "ResourceObserver"]


class EventRecorder(Protocol):
    """A recorder of Kubernetes events; it must not wait for the network.

    A component records Normal events for writes, and Warning events for objects that it adopts or leaves alone and for
    overridden fields. The condition reports failures for as long as they last; an operator also records Warning events
    for them (`konverge.operator`).
    """

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Normal event on the owner.

        Args:
            owner: The object that the event is about.
            reason: For example ``CreatedDeployment``.
            message: One sentence for users.
            action: The verb: ``Create``, ``Update``, ``Delete`` or ``Orphan``.
            related: The object of the operation.
        """

    def warning(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Warning event on the owner, which can require an action by a user.

        Args:
            owner: The object that the event is about.
            reason: For example ``ResourceAdopted``.
            message: One sentence for users.
            action: The verb: ``Adopt`` or ``Delete``.
            related: The object of the operation.
        """


class ConditionMetrics(Protocol):
    """Metrics of conditions; called once for an owner after its status write, or if no write is necessary."""

    def record(self, owner: Object, conditions: Sequence[Condition]) -> None:
        """Record status, reason and transition time of each condition of the owner, including those of other writers.

        The list is complete: a condition that is no longer in it is gone.
        """


class ApplyMetrics(Protocol):
    """Metrics of applies: one call for each managed resource that a reconcile reaches.

    The labels are the same for many owners: the owner's kind, the component's name, the resource's
    ``metrics_identifier`` and its kind.
    """

    def record_apply(self, *, owner_kind: str, component: str, resource: str, kind: str, operation: str) -> None:
        """Count a resource in the desired state; the operation is ``created``, ``updated`` or ``none``."""

    def record_failure(self, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        """Count a resource whose apply failed."""


class ResourceObserver(Protocol):
    """An observer of each resource in a reconcile."""

    def on_processed(self, identity: str, live: Object | None, halt: Convergence | None) -> None:
        """Handle an applied or read resource. With `halt`, the component stops at it; with neither, it is absent."""

    def on_suspended(self, identity: str, suspension: Suspension) -> None:
        """Handle the suspension status of a resource."""

    def on_adopted(self, identity: str, message: str) -> None:
        """Handle the adoption of an object; the message names its earlier controller or managers."""

    def on_left_alone(self, identity: str, message: str) -> None:
        """Handle an object that is marked for deletion and stays; the message names its controller or managers."""

    def on_overridden(self, identity: str, message: str) -> None:
        """Handle an applied resource that is stored with other values; the message names the fields."""
