"""CustomResourceDefinition: an integration, because the API server decides whether it serves the kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object, find_condition
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
from konverge.primitives.status_conditions import describe_termination, read_condition, read_generation

__all__ = ["CustomResourceDefinition"]


class CustomResourceDefinition(IntegrationKind[ContentMutator]):
    """An ``apiextensions.k8s.io/v1`` CustomResourceDefinition.

    Suspension never deletes it, and cannot be made to: every object of the kind would go with it, everybody's.
    """

    gvk = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    is_cluster_scoped = True

    def create_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    def validate_kind(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Deletion on suspension."""
        if self.deletes_on_suspend:
            yield (
                "delete_on_suspend is set: with a CustomResourceDefinition all objects of its kind are deleted; "
                "use the component's delete options where that is meant"
            )

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when its names are accepted and the kind is established; failing when another kind has a name."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down until the kind is established; Degraded when it is, and its new names are not accepted."""
        status, reason = _evaluate_status(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        established = find_condition(live, "Established")
        serves = established is not None and established.status == "True" and not describe_termination(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "CustomResourceDefinition stays in place while suspended")


def _evaluate_status(live: Object) -> tuple[ConvergingStatus, str]:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, why
    generation = read_generation(live)
    names = read_condition(live, "NamesAccepted", generation)
    if names.status == "False":
        return ConvergingStatus.OPERATION_FAILING, names.description
    for found in (names, read_condition(live, "Established", generation)):
        if found.status != "True":
            return ConvergingStatus.OPERATION_PENDING, found.description
    return ConvergingStatus.OPERATIONAL, "CustomResourceDefinition is established"
