"""HorizontalPodAutoscaler: an integration, because its metrics come from outside."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object, find_condition
from konverge._internal.mutation import EditCategory, EditFunction, HorizontalPodAutoscalerSpecEditor, Mutator
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

__all__ = ["HorizontalPodAutoscaler", "HorizontalPodAutoscalerMutator"]


class HorizontalPodAutoscaler(IntegrationKind["HorizontalPodAutoscalerMutator"]):
    """An ``autoscaling/v2`` HorizontalPodAutoscaler.

    Suspension deletes it: otherwise it would scale a suspended workload up again. The workload that it scales should
    omit ``spec.replicas``; otherwise the autoscaler and the operator overwrite each other's value.
    """

    gvk: GroupVersionKind = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
    deletes_on_suspend_by_default = True

    def create_mutator(self) -> HorizontalPodAutoscalerMutator:
        """Return a new mutator for the callback of one mutation."""
        return HorizontalPodAutoscalerMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when it scales; it is failing if it cannot reach its target or has no metrics."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if it cannot scale, and Degraded until its controller has reported."""
        status, reason = _evaluate_status(live)
        return Grace(_GRACE[status], reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: the deletion follows."""
        return Suspension(SuspensionStatus.SUSPENDED, "HorizontalPodAutoscaler deleted on suspend")


_GRACE = {
    ConvergingStatus.OPERATIONAL: GraceStatus.HEALTHY,
    ConvergingStatus.OPERATION_FAILING: GraceStatus.DOWN,
    ConvergingStatus.OPERATION_PENDING: GraceStatus.DEGRADED,
}


def _evaluate_status(live: Object) -> tuple[ConvergingStatus, str]:
    able = find_condition(live, "AbleToScale")
    if able is not None and able.status == "False":
        return ConvergingStatus.OPERATION_FAILING, able.message or "Autoscaler is unable to scale its target"
    active = find_condition(live, "ScalingActive")
    if active is None:
        return ConvergingStatus.OPERATION_PENDING, "Waiting for autoscaler to report on its metrics"
    match active.status:
        case "True":
            return ConvergingStatus.OPERATIONAL, active.message or "Autoscaler is active"
        case "False":
            return ConvergingStatus.OPERATION_FAILING, active.message or "Autoscaler is not active"
        case _:
            return ConvergingStatus.OPERATION_PENDING, active.message or "Autoscaler does not know its metrics"


class HorizontalPodAutoscalerMutator(Mutator):
    """Records edits of a HorizontalPodAutoscaler."""

    def edit_horizontal_pod_autoscaler_spec(self, edit: EditFunction[HorizontalPodAutoscalerSpecEditor] | None) -> None:
        """Record an edit of the spec."""
        self._edit(EditCategory.CONTENT, HorizontalPodAutoscalerSpecEditor, ("spec",), edit)
