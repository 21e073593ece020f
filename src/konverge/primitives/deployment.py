"""Deployment: a workload that rolls out replica sets."""

from __future__ import annotations

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Category, DeploymentSpecEditor, Edit, WorkloadMutator
from konverge.primitives.categories import WorkloadKind
from konverge.primitives.lifecycle import Convergence, Grace, Operation, Suspension
from konverge.primitives.reading import boolean_at, integer_at
from konverge.primitives.replicas import (
    Replicas,
    failure_told_by,
    replica_failure,
    replicas_converging_status,
    replicas_grace_status,
    replicas_suspension_status,
    wanted_replicas,
)

__all__ = ["Deployment", "DeploymentMutator"]


class Deployment(WorkloadKind["DeploymentMutator"]):
    """An ``apps/v1`` Deployment. Suspension scales it to zero."""

    gvk = GroupVersionKind("apps", "v1", "Deployment")

    def new_mutator(self) -> DeploymentMutator:
        """What the callbacks of this kind's mutations get."""
        return DeploymentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when all replicas are ready, updated and none of an older revision is left."""
        return replicas_converging_status(live, operation, _replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no replica is ready, Degraded when some are."""
        return replicas_grace_status(live, _replicas(live))

    @staticmethod
    def default_suspend(mutator: DeploymentMutator) -> None:
        """Scale to zero."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended when no replica is left."""
        return replicas_suspension_status(live, "Deployment")


def _replicas(live: Object) -> Replicas:
    return Replicas(
        "Deployment",
        wanted_replicas(live),
        integer_at(live, "status", "readyReplicas"),
        _pending_rollout(live),
        failure=_failure(live),
    )


def _pending_rollout(live: Object) -> str:
    # A paused Deployment does not roll out; it would otherwise be unfinished for as long as it is paused.
    if boolean_at(live, "spec", "paused"):
        return ""
    desired = wanted_replicas(live)
    updated = integer_at(live, "status", "updatedReplicas")
    if updated < desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    old = integer_at(live, "status", "replicas") - updated
    return f"Waiting for rollout: {old} old replicas pending termination" if old > 0 else ""


def _failure(live: Object) -> str:
    # The deadline last: when pods cannot be created, it passes because of that.
    found = (replica_failure(live), failure_told_by(live, "Progressing", "False"))
    return "; ".join(failure for failure in found if failure)


class DeploymentMutator(WorkloadMutator):
    """Records edits of a Deployment."""

    def edit_deployment_spec(self, edit: Edit[DeploymentSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(Category.CONTENT, DeploymentSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self.edit_deployment_spec(lambda spec: spec.set_replicas(replicas))
