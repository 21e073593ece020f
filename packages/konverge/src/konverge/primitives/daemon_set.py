"""DaemonSet: a workload with one pod on each node that it selects."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import DaemonSetSpecEditor, EditCategory, EditFunction, WorkloadMutator
from konverge.primitives.field_access import read_integer, read_text
from konverge.primitives.kind_categories import WorkloadKind
from konverge.primitives.replica_health import (
    ALL_READY,
    ReplicaCounts,
    evaluate_convergence,
    evaluate_grace,
)
from konverge.primitives.resource_protocol import Convergence, Grace, Operation, Suspension, SuspensionStatus

__all__ = ["DaemonSet", "DaemonSetMutator"]


class DaemonSet(WorkloadKind["DaemonSetMutator"]):
    """An ``apps/v1`` DaemonSet. Suspension deletes it: its pods cannot be scaled away."""

    gvk = GroupVersionKind("apps", "v1", "DaemonSet")
    deletes_on_suspend_by_default = True

    def create_mutator(self) -> DaemonSetMutator:
        """What the callbacks of this kind's mutations get."""
        return DaemonSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when the pods of all selected nodes are ready and updated, and when no node is selected."""
        return evaluate_convergence(live, operation, _count_replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no pod is ready, Degraded when some are."""
        return evaluate_grace(live, _count_replicas(live))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended at once: there is nothing to wait for before the deletion."""
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
    # With OnDelete the pods are updated when somebody deletes them, which may be never.
    if read_text(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    desired, updated = _read_desired_pods(live), read_integer(live, "status", "updatedNumberScheduled")
    return f"Waiting for rollout: {updated}/{desired} replicas updated" if updated < desired else ""


class DaemonSetMutator(WorkloadMutator):
    """Records edits of a DaemonSet."""

    def edit_daemon_set_spec(self, edit: EditFunction[DaemonSetSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, DaemonSetSpecEditor, ("spec",), edit)
