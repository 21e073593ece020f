"""Namespace: an integration, because a namespace in deletion accepts no new objects until it is gone."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.primitives.field_access import read_items, read_text
from konverge._internal.primitives.generic_objects import ContentMutator
from konverge._internal.primitives.kind_categories import IntegrationKind
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge._internal.primitives.status_conditions import describe_termination

__all__ = ["Namespace"]


class Namespace(IntegrationKind[ContentMutator]):
    """A core ``v1`` Namespace. Suspension keeps it and its content."""

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "Namespace")
    is_cluster_scoped = True

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when it is active, and pending during its deletion: afterwards it is created again."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down until it is active: the API server creates nothing in it before."""
        status, reason = _evaluate_status(live)
        is_active = status is ConvergingStatus.OPERATIONAL
        return Grace(GraceStatus.HEALTHY if is_active else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Namespace stays in place while suspended")


def _evaluate_status(live: Object) -> tuple[ConvergingStatus, str]:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, ": ".join([why, *_list_obstacles(live)])
    if read_text(live, "status", "phase") == "Active":
        return ConvergingStatus.OPERATIONAL, "Namespace is active"
    return ConvergingStatus.OPERATION_PENDING, "Waiting for namespace to become active"


def _list_obstacles(live: Object) -> list[str]:
    """Return the messages about what prevents the deletion: only such conditions of a namespace are True."""
    conditions = read_items(live, "status", "conditions")
    obstacles = [condition for condition in conditions if condition.get("status") == "True"]
    messages = [message for condition in obstacles if (message := read_text(condition, "message"))]
    return ["; ".join(messages)] if messages else []
