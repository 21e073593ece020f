"""DaemonSet: a workload with one pod on each node that it selects."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Category, DaemonSetSpecEditor, Edit, WorkloadMutator
from konverge.primitives.categories import WorkloadKind
from konverge.primitives.lifecycle import Convergence, Grace, Operation, Suspension, SuspensionStatus
from konverge.primitives.reading import integer_at, text_at
from konverge.primitives.replicas import (
    ALL_READY,
    Replicas,
    replicas_converging_status,
    replicas_grace_status,
)

__all__ = ["DaemonSet", "DaemonSetMutator"]


class DaemonSet(WorkloadKind["DaemonSetMutator"]):
    """An ``apps/v1`` DaemonSet. Suspension deletes it: its pods cannot be scaled away."""

    gvk = GroupVersionKind("apps", "v1", "DaemonSet")
    deletes_on_suspend_by_default = True

    def new_mutator(self) -> DaemonSetMutator:
        """What the callbacks of this kind's mutations get."""
        return DaemonSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when the pods of all selected nodes are ready and updated, and when no node is selected."""
        return replicas_converging_status(live, operation, _replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no pod is ready, Degraded when some are."""
        return replicas_grace_status(live, _replicas(live))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended at once: there is nothing to wait for before the deletion."""
        return Suspension(SuspensionStatus.SUSPENDED, "DaemonSet deleted on suspend")


def _replicas(live: Object) -> Replicas:
    desired = _desired(live)
    return Replicas(
        "DaemonSet",
        desired,
        integer_at(live, "status", "numberReady"),
        _pending_rollout(live),
        healthy_reason=ALL_READY if desired else "No nodes match the DaemonSet",
    )


def _desired(live: Object) -> int:
    return integer_at(live, "status", "desiredNumberScheduled")


def _pending_rollout(live: Object) -> str:
    # With OnDelete the pods are updated when somebody deletes them, which may be never.
    if text_at(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    desired, updated = _desired(live), integer_at(live, "status", "updatedNumberScheduled")
    return f"Waiting for rollout: {updated}/{desired} replicas updated" if updated < desired else ""


class DaemonSetMutator(WorkloadMutator):
    """Records edits of a DaemonSet."""

    def edit_daemon_set_spec(self, edit: Edit[DaemonSetSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(Category.CONTENT, DaemonSetSpecEditor, ("spec",), edit)
