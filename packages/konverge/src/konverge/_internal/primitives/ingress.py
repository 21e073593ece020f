"""Ingress: an integration, because a controller outside the component assigns its address."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, EditFunction, IngressSpecEditor, Mutator
from konverge._internal.primitives.kind_categories import IntegrationKind
from konverge._internal.primitives.load_balancer import ADDRESS_ASSIGNED, AWAITING_ADDRESS, has_address
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = ["Ingress", "IngressMutator"]


class Ingress(IntegrationKind["IngressMutator"]):
    """A ``networking.k8s.io/v1`` Ingress. Suspension keeps it and its address.

    Some ingress controllers publish no address. For these, pass your own `converging_status` and `grace_status`.
    """

    gvk: GroupVersionKind = GroupVersionKind("networking.k8s.io", "v1", "Ingress")

    def create_mutator(self) -> IngressMutator:
        """Return a new mutator for the callback of one mutation."""
        return IngressMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when it has an address."""
        if has_address(live):
            return Convergence(ConvergingStatus.OPERATIONAL, ADDRESS_ASSIGNED)
        return Convergence(ConvergingStatus.OPERATION_PENDING, AWAITING_ADDRESS)

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Degraded without an address: its backends may work."""
        if has_address(live):
            return Grace(GraceStatus.HEALTHY, ADDRESS_ASSIGNED)
        return Grace(GraceStatus.DEGRADED, AWAITING_ADDRESS)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Ingress suspended (backend unavailable)")


class IngressMutator(Mutator):
    """Records edits of an Ingress."""

    def edit_ingress_spec(self, edit: EditFunction[IngressSpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, IngressSpecEditor, ("spec",), edit)
