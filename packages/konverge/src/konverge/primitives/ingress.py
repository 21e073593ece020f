"""Ingress: an integration, because its address comes from outside."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import EditCategory, EditFunction, IngressSpecEditor, Mutator
from konverge.primitives.kind_categories import IntegrationKind
from konverge.primitives.load_balancer import ADDRESS_ASSIGNED, AWAITING_ADDRESS, has_address
from konverge.primitives.resource_protocol import (
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
    """A ``networking.k8s.io/v1`` Ingress. Suspension leaves it in place, with its address.

    Some ingress controllers publish no address; there, give a `converging_status` and a `grace_status` of your own.
    """

    gvk = GroupVersionKind("networking.k8s.io", "v1", "Ingress")

    def create_mutator(self) -> IngressMutator:
        """What the callbacks of this kind's mutations get."""
        return IngressMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when it has an address."""
        if has_address(live):
            return Convergence(ConvergingStatus.OPERATIONAL, ADDRESS_ASSIGNED)
        return Convergence(ConvergingStatus.OPERATION_PENDING, AWAITING_ADDRESS)

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Degraded without the address: what it leads to may work."""
        if has_address(live):
            return Grace(GraceStatus.HEALTHY, ADDRESS_ASSIGNED)
        return Grace(GraceStatus.DEGRADED, AWAITING_ADDRESS)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Ingress suspended (backend unavailable)")


class IngressMutator(Mutator):
    """Records edits of an Ingress."""

    def edit_ingress_spec(self, edit: EditFunction[IngressSpecEditor] | None) -> None:
        """Edit the spec."""
        self._edit(EditCategory.CONTENT, IngressSpecEditor, ("spec",), edit)
