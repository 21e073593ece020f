"""Where a pass reports besides the condition: events, metrics, an observer. Ports; None switches them off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from konverge.kube import Condition, Object
from konverge.primitives.resource_protocol import Convergence, Suspension

__all__ = ["ApplyMetrics", "ConditionMetrics", "EventRecorder", "ResourceObserver"]


class EventRecorder(Protocol):
    """What records Kubernetes events; it must not wait for the network.

    A component reports what was done by Normal events, and by Warning events what it has adopted or left alone, or what
    somebody overrides. What goes wrong is in the condition, which is there for as long as it is wrong; an operator
    reports it by Warning events besides (`konverge.operator`).
    """

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Normal event on the owner.

        Args:
            owner: The object that the event is about.
            reason: For example ``CreatedDeployment``.
            message: One sentence for a person.
            action: The verb: ``Create``, ``Update``, ``Delete`` or ``Orphan``.
            related: The object that it happened to.
        """

    def warning(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Warning event on the owner: a person may have to look at it.

        Args:
            owner: The object that the event is about.
            reason: For example ``ResourceAdopted``.
            message: One sentence for a person.
            action: The verb: ``Adopt`` or ``Delete``.
            related: The object that it happened to.
        """


class ConditionMetrics(Protocol):
    """What counts conditions; called once for an owner after its status was written, or found to need no write."""

    def record(self, owner: Object, conditions: Sequence[Condition]) -> None:
        """Note the present status, reason and transition time of each condition of the owner, foreign ones included.

        They are all that it has: one that is not among them any more is gone.
        """


class ApplyMetrics(Protocol):
    """What counts the applies: one call for each managed resource in each pass that gets as far as it.

    All of it is the same for many owners: the owner's kind, the component's name, what the resource is called
    (``metrics_identifier``) and its kind.
    """

    def record_apply(self, *, owner_kind: str, component: str, resource: str, kind: str, operation: str) -> None:
        """The resource is as it is wanted; the operation is ``created``, ``updated`` or ``none``."""

    def record_failure(self, *, owner_kind: str, component: str, resource: str, kind: str) -> None:
        """The resource could not be brought to the state wanted."""


class ResourceObserver(Protocol):
    """Who hears what becomes of each resource in a pass.

    One that also runs the passes of whole components is a `konverge.component.ReconcileObserver`.
    """

    def on_processed(self, identity: str, live: Object | None, halt: Convergence | None) -> None:
        """A resource has been applied or read; with `halt`, the component stops there; with neither, it is absent."""

    def on_suspended(self, identity: str, suspension: Suspension) -> None:
        """A resource has been suspended as far as it goes."""

    def on_adopted(self, identity: str, message: str) -> None:
        """An object that existed already, and was not the component's, has been applied; the message says whose."""

    def on_left_alone(self, identity: str, message: str) -> None:
        """An object that was to be deleted is not the component's, and stays; the message says whose it is."""

    def on_overridden(self, identity: str, message: str) -> None:
        """A resource has been applied and is stored with other values; the message names the fields."""
