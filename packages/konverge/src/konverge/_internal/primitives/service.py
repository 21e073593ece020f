"""Service: an integration, because a controller outside the component assigns the address of a load balancer."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, EditFunction, Mutator, ServiceSpecEditor
from konverge._internal.primitives.field_access import read_text
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

__all__ = ["Service", "ServiceMutator"]


class Service(IntegrationKind["ServiceMutator"]):
    """A core ``v1`` Service. Suspension keeps it: without pods it needs no resources."""

    gvk: GroupVersionKind = GroupVersionKind("", "v1", "Service")

    def create_mutator(self) -> ServiceMutator:
        """Return a new mutator for the callback of one mutation."""
        return ServiceMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational; for a load balancer, only when it has an address."""
        if not _is_load_balancer(live):
            return Convergence(ConvergingStatus.OPERATIONAL, "Service is operational")
        if not has_address(live):
            return Convergence(ConvergingStatus.OPERATION_PENDING, AWAITING_ADDRESS)
        return Convergence(ConvergingStatus.OPERATIONAL, ADDRESS_ASSIGNED)

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Degraded for a load balancer without an address: the Service works inside the cluster."""
        if _is_load_balancer(live) and not has_address(live):
            return Grace(GraceStatus.DEGRADED, AWAITING_ADDRESS)
        return Grace(GraceStatus.HEALTHY, "Service is operational")

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Service stays in place while suspended")


def _is_load_balancer(live: Object) -> bool:
    return read_text(live, "spec", "type") == "LoadBalancer"


class ServiceMutator(Mutator):
    """Records edits of a Service."""

    def edit_service_spec(self, edit: EditFunction[ServiceSpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, ServiceSpecEditor, ("spec",), edit)
