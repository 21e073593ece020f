"""DaemonSet: a workload with one pod on each node that it selects."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import DaemonSetSpecEditor, EditCategory, EditFunction, WorkloadMutator
from konverge._internal.primitives.field_access import read_integer, read_text
from konverge._internal.primitives.kind_categories import WorkloadKind
from konverge._internal.primitives.replica_health import (
    ALL_READY,
    ReplicaCounts,
    evaluate_convergence,
    evaluate_grace,
)
from konverge._internal.primitives.resource_protocol import Convergence, Grace, Operation, Suspension, SuspensionStatus

__all__ = ["DaemonSet", "DaemonSetMutator"]


class DaemonSet(WorkloadKind["DaemonSetMutator"]):
    """An ``apps/v1`` DaemonSet. Suspension deletes it, because a DaemonSet cannot be scaled to zero."""

    gvk: GroupVersionKind = GroupVersionKind("apps", "v1", "DaemonSet")
    deletes_on_suspend_by_default = True

    def create_mutator(self) -> DaemonSetMutator:
        """Return a new mutator for the callback of one mutation."""
        return DaemonSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Healthy when the pods of all selected nodes are ready and updated, or when no node is selected."""
        return evaluate_convergence(live, operation, _count_replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if no pod is ready, and Degraded if only some are."""
        return evaluate_grace(live, _count_replicas(live))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended at once: there is nothing to wait for before the deletion."""
        return Suspension(SuspensionStatus.SUSPENDED, "DaemonSet deleted on suspend")


def _count_replicas(live: Object) -> ReplicaCounts:
    desired = _read_desired_pods(live)
    return ReplicaCounts(
        "DaemonSet",
        desired,
        read_integer(live, "status", "numberReady"),
        _describe_rollout(live),
        healthy_reason=ALL_READY if desired else "No nodes match the DaemonSet",
    )


def _read_desired_pods(live: Object) -> int:
    return read_integer(live, "status", "desiredNumberScheduled")


def _describe_rollout(live: Object) -> str:
    # With OnDelete, a pod is updated only after its deletion, which may never happen.
    if read_text(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    desired, updated = _read_desired_pods(live), read_integer(live, "status", "updatedNumberScheduled")
    return f"Waiting for rollout: {updated}/{desired} replicas updated" if updated < desired else ""


class DaemonSetMutator(WorkloadMutator):
    """Records edits of a DaemonSet."""

    def edit_daemon_set_spec(self, edit: EditFunction[DaemonSetSpecEditor] | None) -> None:
        """Record an edit of the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, DaemonSetSpecEditor, ("spec",), edit)
