"""CustomResourceDefinition: an integration, because the API server decides whether it serves the kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object, find_condition
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
from konverge.primitives.reported import generation_of, reported, terminating

__all__ = ["CustomResourceDefinition"]


class CustomResourceDefinition(IntegrationKind[ContentMutator]):
    """An ``apiextensions.k8s.io/v1`` CustomResourceDefinition.

    Suspension never deletes it, and cannot be made to: every object of the kind would go with it, everybody's.
    """

    gvk = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    is_cluster_scoped = True

    def new_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    def kind_mistakes(self, obj: Mapping[str, Any]) -> Iterator[str]:
        """Deletion on suspension."""
        if self.deletes_on_suspend:
            yield (
                "delete_on_suspend is set: with a CustomResourceDefinition all objects of its kind are deleted; "
                "use the component's delete options where that is meant"
            )

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when its names are accepted and the kind is established; failing when another kind has a name."""
        return Convergence(*_judged(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down until the kind is established; Degraded when it is, and its new names are not accepted."""
        status, reason = _judged(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        established = find_condition(live, "Established")
        serves = established is not None and established.status == "True" and not terminating(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "CustomResourceDefinition stays in place while suspended")


def _judged(live: Object) -> tuple[ConvergingStatus, str]:
    if why := terminating(live):
        return ConvergingStatus.OPERATION_PENDING, why
    generation = generation_of(live)
    names = reported(live, "NamesAccepted", generation)
    if names.status == "False":
        return ConvergingStatus.OPERATION_FAILING, names.told
    for found in (names, reported(live, "Established", generation)):
        if found.status != "True":
            return ConvergingStatus.OPERATION_PENDING, found.told
    return ConvergingStatus.OPERATIONAL, "CustomResourceDefinition is established"
