"""ReplicaSet: a workload that keeps a number of pods and never rolls out."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Category, Edit, PodTemplateMutator, ReplicaSetSpecEditor
from konverge.primitives.categories import WorkloadKind
from konverge.primitives.lifecycle import Convergence, Grace, Operation, Suspension
from konverge.primitives.reading import integer_at
from konverge.primitives.replicas import (
    Replicas,
    replica_failure,
    replicas_converging_status,
    replicas_grace_status,
    replicas_suspension_status,
    wanted_replicas,
)

__all__ = ["ReplicaSet", "ReplicaSetMutator"]


class ReplicaSet(WorkloadKind["ReplicaSetMutator"]):
    """An ``apps/v1`` ReplicaSet. Suspension scales it to zero."""

    gvk = GroupVersionKind("apps", "v1", "ReplicaSet")

    def new_mutator(self) -> ReplicaSetMutator:
        """What the callbacks of this kind's mutations get."""
        return ReplicaSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when all replicas are ready and none too many is left. Pods of an older template count."""
        return replicas_converging_status(live, operation, _replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no replica is ready, Degraded when some are."""
        return replicas_grace_status(live, _replicas(live))

    @staticmethod
    def default_suspend(mutator: ReplicaSetMutator) -> None:
        """Scale to zero."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended when no replica is left."""
        return replicas_suspension_status(live, "ReplicaSet")


def _replicas(live: Object) -> Replicas:
    desired = wanted_replicas(live)
    surplus = integer_at(live, "status", "replicas") - desired
    return Replicas(
        "ReplicaSet",
        desired,
        integer_at(live, "status", "readyReplicas"),
        f"Waiting for {surplus} surplus replicas to terminate" if surplus > 0 else "",
        failure=replica_failure(live),
    )


class ReplicaSetMutator(PodTemplateMutator):
    """Records edits of a ReplicaSet."""

    def edit_replica_set_spec(self, edit: Edit[ReplicaSetSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(Category.CONTENT, ReplicaSetSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self.edit_replica_set_spec(lambda spec: spec.set_replicas(replicas))
