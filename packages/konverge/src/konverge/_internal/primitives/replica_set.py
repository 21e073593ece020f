"""ReplicaSet: a workload with a number of pods and without rollouts."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, EditFunction, PodTemplateMutator, ReplicaSetSpecEditor
from konverge._internal.primitives.field_access import read_integer
from konverge._internal.primitives.kind_categories import WorkloadKind
from konverge._internal.primitives.replica_health import (
    ReplicaCounts,
    describe_replica_failure,
    evaluate_convergence,
    evaluate_grace,
    evaluate_suspension,
    read_desired_replicas,
)
from konverge._internal.primitives.resource_protocol import Convergence, Grace, Operation, Suspension

__all__ = ["ReplicaSet", "ReplicaSetMutator"]


class ReplicaSet(WorkloadKind["ReplicaSetMutator"]):
    """An ``apps/v1`` ReplicaSet. Suspension scales it to zero."""

    gvk: GroupVersionKind = GroupVersionKind("apps", "v1", "ReplicaSet")

    def create_mutator(self) -> ReplicaSetMutator:
        """Return a new mutator for the callback of one mutation."""
        return ReplicaSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Healthy when all replicas are ready and none is surplus. Pods of an older template count."""
        return evaluate_convergence(live, operation, _count_replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if no replica is ready, and Degraded if only some are."""
        return evaluate_grace(live, _count_replicas(live))

    @staticmethod
    def default_suspend(mutator: ReplicaSetMutator) -> None:
        """Scale the desired object to zero replicas."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended when no replica is left."""
        return evaluate_suspension(live, "ReplicaSet")


def _count_replicas(live: Object) -> ReplicaCounts:
    desired = read_desired_replicas(live)
    surplus = read_integer(live, "status", "replicas") - desired
    return ReplicaCounts(
        "ReplicaSet",
        desired,
        read_integer(live, "status", "readyReplicas"),
        f"Waiting for {surplus} surplus replicas to terminate" if surplus > 0 else "",
        failure=describe_replica_failure(live),
    )


class ReplicaSetMutator(PodTemplateMutator):
    """Records edits of a ReplicaSet."""

    def edit_replica_set_spec(self, edit: EditFunction[ReplicaSetSpecEditor] | None) -> None:
        """Record an edit of the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, ReplicaSetSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set the desired number of pods."""
        self.edit_replica_set_spec(lambda spec: spec.set(replicas=replicas))
