"""Namespace: an integration, because a namespace that is being deleted takes in nothing until it is gone."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.primitives.field_access import read_items, read_text
from konverge.primitives.generic_objects import ContentMutator
from konverge.primitives.kind_categories import IntegrationKind
from konverge.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge.primitives.status_conditions import describe_termination

__all__ = ["Namespace"]


class Namespace(IntegrationKind[ContentMutator]):
    """A core ``v1`` Namespace. Suspension leaves it in place, with all that is in it."""

    gvk = GroupVersionKind("", "v1", "Namespace")
    is_cluster_scoped = True

    def create_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when it is active. One that is being deleted is pending: it is made anew when it is gone."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down until it is active: nothing can be made in it."""
        status, reason = _evaluate_status(live)
        is_active = status is ConvergingStatus.OPERATIONAL
        return Grace(GraceStatus.HEALTHY if is_active else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Namespace stays in place while suspended")


def _evaluate_status(live: Object) -> tuple[ConvergingStatus, str]:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, ": ".join([why, *_list_obstacles(live)])
    if read_text(live, "status", "phase") == "Active":
        return ConvergingStatus.OPERATIONAL, "Namespace is active"
    return ConvergingStatus.OPERATION_PENDING, "Waiting for namespace to become active"


def _list_obstacles(live: Object) -> list[str]:
    """What is in the way of the deletion: the namespace's conditions are True for that only."""
    standing = (each for each in read_items(live, "status", "conditions") if each.get("status") == "True")
    messages = [message for each in standing if (message := read_text(each, "message"))]
    return ["; ".join(messages)] if messages else []
