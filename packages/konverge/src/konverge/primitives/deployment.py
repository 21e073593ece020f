"""Deployment: a workload that rolls out replica sets."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import DeploymentSpecEditor, EditCategory, EditFunction, WorkloadMutator
from konverge.primitives.field_access import read_boolean, read_integer
from konverge.primitives.kind_categories import WorkloadKind
from konverge.primitives.replica_health import (
    ReplicaCounts,
    describe_failed_condition,
    describe_replica_failure,
    evaluate_convergence,
    evaluate_grace,
    evaluate_suspension,
    read_desired_replicas,
)
from konverge.primitives.resource_protocol import Convergence, Grace, Operation, Suspension

__all__ = ["Deployment", "DeploymentMutator"]


class Deployment(WorkloadKind["DeploymentMutator"]):
    """An ``apps/v1`` Deployment. Suspension scales it to zero."""

    gvk = GroupVersionKind("apps", "v1", "Deployment")

    def create_mutator(self) -> DeploymentMutator:
        """What the callbacks of this kind's mutations get."""
        return DeploymentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when all replicas are ready, updated and none of an older revision is left."""
        return evaluate_convergence(live, operation, _count_replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no replica is ready, Degraded when some are."""
        return evaluate_grace(live, _count_replicas(live))

    @staticmethod
    def default_suspend(mutator: DeploymentMutator) -> None:
        """Scale to zero."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended when no replica is left."""
        return evaluate_suspension(live, "Deployment")


def _count_replicas(live: Object) -> ReplicaCounts:
    return ReplicaCounts(
        "Deployment",
        read_desired_replicas(live),
        read_integer(live, "status", "readyReplicas"),
        _describe_rollout(live),
        failure=_describe_failure(live),
    )


def _describe_rollout(live: Object) -> str:
    # A paused Deployment does not roll out; it would otherwise be unfinished for as long as it is paused.
    if read_boolean(live, "spec", "paused"):
        return ""
    desired = read_desired_replicas(live)
    updated = read_integer(live, "status", "updatedReplicas")
    if updated < desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    old = read_integer(live, "status", "replicas") - updated
    return f"Waiting for rollout: {old} old replicas pending termination" if old > 0 else ""


def _describe_failure(live: Object) -> str:
    # The deadline last: when pods cannot be created, it passes because of that.
    found = (describe_replica_failure(live), describe_failed_condition(live, "Progressing", "False"))
    return "; ".join(failure for failure in found if failure)


class DeploymentMutator(WorkloadMutator):
    """Records edits of a Deployment."""

    def edit_deployment_spec(self, edit: EditFunction[DeploymentSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, DeploymentSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self.edit_deployment_spec(lambda spec: spec.set(replicas=replicas))
