"""Deployment: a workload that rolls out ReplicaSets."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import DeploymentSpecEditor, EditCategory, EditFunction, WorkloadMutator
from konverge._internal.primitives.field_access import read_boolean, read_integer
from konverge._internal.primitives.kind_categories import WorkloadKind
from konverge._internal.primitives.replica_health import (
    ReplicaCounts,
    describe_failed_condition,
    describe_replica_failure,
    evaluate_convergence,
    evaluate_grace,
    evaluate_suspension,
    read_desired_replicas,
)
from konverge._internal.primitives.resource_protocol import Convergence, Grace, Operation, Suspension

__all__ = ["Deployment", "DeploymentMutator"]


class Deployment(WorkloadKind["DeploymentMutator"]):
    """An ``apps/v1`` Deployment. Suspension scales it to zero."""

    gvk: GroupVersionKind = GroupVersionKind("apps", "v1", "Deployment")

    def create_mutator(self) -> DeploymentMutator:
        """Return a new mutator for the callback of one mutation."""
        return DeploymentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Healthy when all replicas are ready and updated, and none of an older revision is left."""
        return evaluate_convergence(live, operation, _count_replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if no replica is ready, and Degraded if only some are."""
        return evaluate_grace(live, _count_replicas(live))

    @staticmethod
    def default_suspend(mutator: DeploymentMutator) -> None:
        """Scale the desired object to zero replicas."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended when no replica is left."""
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
    # A paused Deployment does not roll out: without this exception, it would never be ready.
    if read_boolean(live, "spec", "paused"):
        return ""
    desired = read_desired_replicas(live)
    updated = read_integer(live, "status", "updatedReplicas")
    if updated < desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    old = read_integer(live, "status", "replicas") - updated
    return f"Waiting for rollout: {old} old replicas pending termination" if old > 0 else ""


def _describe_failure(live: Object) -> str:
    # The exceeded deadline comes last: failed pod creations are its cause.
    failures = (describe_replica_failure(live), describe_failed_condition(live, "Progressing", "False"))
    return "; ".join(failure for failure in failures if failure)


class DeploymentMutator(WorkloadMutator):
    """Records edits of a Deployment."""

    def edit_deployment_spec(self, edit: EditFunction[DeploymentSpecEditor] | None) -> None:
        """Record an edit of the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, DeploymentSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set the desired number of pods."""
        self.edit_deployment_spec(lambda spec: spec.set(replicas=replicas))
