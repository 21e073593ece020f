"""Namespace: an integration, because a namespace that is being deleted takes in nothing until it is gone."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.primitives.categories import IntegrationKind
from konverge.primitives.generic import ContentMutator
from konverge.primitives.lifecycle import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge.primitives.reading import items_at, text_at
from konverge.primitives.reported import terminating

__all__ = ["Namespace"]


class Namespace(IntegrationKind[ContentMutator]):
    """A core ``v1`` Namespace. Suspension leaves it in place, with all that is in it."""

    gvk = GroupVersionKind("", "v1", "Namespace")
    is_cluster_scoped = True

    def new_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when it is active. One that is being deleted is pending: it is made anew when it is gone."""
        return Convergence(*_judged(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down until it is active: nothing can be made in it."""
        status, reason = _judged(live)
        is_active = status is ConvergingStatus.OPERATIONAL
        return Grace(GraceStatus.HEALTHY if is_active else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Namespace stays in place while suspended")


def _judged(live: Object) -> tuple[ConvergingStatus, str]:
    if why := terminating(live):
        return ConvergingStatus.OPERATION_PENDING, ": ".join([why, *_obstacles(live)])
    if text_at(live, "status", "phase") == "Active":
        return ConvergingStatus.OPERATIONAL, "Namespace is active"
    return ConvergingStatus.OPERATION_PENDING, "Waiting for namespace to become active"


def _obstacles(live: Object) -> list[str]:
    """What is in the way of the deletion: the namespace's conditions are True for that only."""
    standing = (each for each in items_at(live, "status", "conditions") if each.get("status") == "True")
    messages = [message for each in standing if (message := text_at(each, "message"))]
    return ["; ".join(messages)] if messages else []
