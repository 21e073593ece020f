"""CustomResourceDefinition: an integration, because the API server decides whether to serve the kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, find_condition
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
from konverge._internal.primitives.status_conditions import describe_termination, read_condition, read_generation

__all__ = ["CustomResourceDefinition"]


class CustomResourceDefinition(IntegrationKind[ContentMutator]):
    """An ``apiextensions.k8s.io/v1`` CustomResourceDefinition.

    Suspension never deletes it, and no option changes that: the API server would delete all objects of the kind with
    it, also those of other owners.
    """

    gvk: GroupVersionKind = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    is_cluster_scoped = True

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Report ``delete_on_suspend``, which this kind does not support."""
        if self.deletes_on_suspend:
            yield (
                "delete_on_suspend: expected False, found True: the deletion of a CustomResourceDefinition deletes all "
                "objects of its kind; if that is intended, use the delete options of the component"
            )

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when the names are accepted and the kind is established.

        It is failing if another kind has one of the names.
        """
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down until the kind is established, and Degraded if it is but its new names are not accepted."""
        status, reason = _evaluate_status(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        established = find_condition(live, "Established")
        serves = established is not None and established.status == "True" and not describe_termination(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "CustomResourceDefinition stays in place while suspended")


def _evaluate_status(live: Object) -> tuple[ConvergingStatus, str]:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, why
    generation = read_generation(live)
    names = read_condition(live, "NamesAccepted", generation)
    if names.status == "False":
        return ConvergingStatus.OPERATION_FAILING, names.description
    for condition in (names, read_condition(live, "Established", generation)):
        if condition.status != "True":
            return ConvergingStatus.OPERATION_PENDING, condition.description
    return ConvergingStatus.OPERATIONAL, "CustomResourceDefinition is established"
