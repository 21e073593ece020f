"""Where a pass reports besides the condition: events and metrics. Ports; None switches them off."""

from __future__ import annotations

from typing import Protocol

from konverge.kube import Condition, Object

__all__ = ["ConditionMetrics", "EventRecorder"]


class EventRecorder(Protocol):
    """What records Kubernetes events; it must not wait for the network."""

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        """Record a Normal event on the owner.

        Args:
            owner: The object that the event is about.
            reason: For example ``CreatedDeployment``.
            message: One sentence for a person.
            action: The verb: ``Create``, ``Update``, ``Delete`` or ``Orphan``.
            related: The object that it happened to.
        """


class ConditionMetrics(Protocol):
    """What counts conditions; called once for each condition of an owner after its status was written."""

    def record(self, owner: Object, condition: Condition) -> None:
        """Note the condition's present status, reason and transition time."""
