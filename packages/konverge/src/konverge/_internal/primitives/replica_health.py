"""Health of kinds with a number of replicas: one rule for converging, grace and suspension.

Converging and grace use the same three questions, so grace is never Healthy if converging is not:

1. Has the kind's controller observed the latest spec? Until then, the status describes an older one.
2. Are exactly the desired replicas ready? More than desired is not ready either: a scale-down is still running.
3. Is the rollout finished? The rule differs by kind; the kind describes the pending step.

None of these kinds returns Failing, because a cluster continues to try. The reason includes the failures that
controllers report: "0/3 ready" alone does not point to an exhausted quota.
"""

from __future__ import annotations

from typing import NamedTuple

from konverge._internal.kube import Object, find_condition
from konverge._internal.primitives.field_access import read_integer
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = [
    "ALL_READY",
    "ReplicaCounts",
    "describe_failed_condition",
    "describe_replica_failure",
    "describe_unobserved_spec",
    "evaluate_convergence",
    "evaluate_grace",
    "evaluate_suspension",
    "read_desired_replicas",
]


ALL_READY = "All replicas are ready"


class ReplicaCounts(NamedTuple):
    """The counts that a kind reads from its live object."""

    kind: str
    """The kind for messages, for example ``StatefulSet``; in lower case, the name of its controller."""
    desired: int
    ready: int
    pending_rollout: str
    """The pending step of the rollout; empty when it is finished, or if the update strategy never waits."""
    failure: str = ""
    """The failure that the kind's controller reports; part of the reason while the replicas are not ready."""
    healthy_reason: str = ALL_READY

    def describe_waiting(self, waiting: str) -> str:
        """Return the pending step and, in parentheses, the failure."""
        return f"{waiting} ({self.failure})" if self.failure else waiting


def read_desired_replicas(live: Object) -> int:
    """Return ``spec.replicas``, whose default in the API is 1."""
    return read_integer(live, "spec", "replicas", default=1)


def describe_unobserved_spec(live: Object, kind: str) -> str:
    """Return the reason to wait until the controller observes the latest spec; empty when it has."""
    if read_integer(live, "status", "observedGeneration") >= read_integer(live, "metadata", "generation"):
        return ""
    return f"Waiting for {kind.lower()} controller to observe latest spec"


def describe_failed_condition(live: Object, condition_type: str, status: str) -> str:
    """Return ``<reason>: <message>`` of the condition of this type if it has this status; empty otherwise."""
    condition = find_condition(live, condition_type)
    if condition is None or condition.status != status:
        return ""
    return ": ".join(part for part in (condition.reason, condition.message) if part)


def describe_replica_failure(live: Object) -> str:
    """Return the failure of pod creations or deletions, such as an exhausted quota or a denial by a webhook."""
    return describe_failed_condition(live, "ReplicaFailure", "True")


def evaluate_convergence(live: Object, operation: Operation, replicas: ReplicaCounts) -> Convergence:
    """Return the converging status by the three questions, in their order."""
    in_progress = ConvergingStatus.CREATING if operation is Operation.CREATED else ConvergingStatus.UPDATING
    if waiting := describe_unobserved_spec(live, replicas.kind):
        return Convergence(in_progress, waiting)
    if replicas.ready != replicas.desired:
        # Without a write in this reconcile, the numbers differ because of scaling.
        status = ConvergingStatus.SCALING if operation is Operation.NONE else in_progress
        return Convergence(
            status, replicas.describe_waiting(f"Waiting for replicas: {replicas.ready}/{replicas.desired} ready")
        )
    if replicas.pending_rollout:
        return Convergence(in_progress, replicas.describe_waiting(replicas.pending_rollout))
    return Convergence(ConvergingStatus.HEALTHY, replicas.healthy_reason)


def evaluate_grace(live: Object, replicas: ReplicaCounts) -> Grace:
    """Return the grace of the live object: Down only if no replica is ready although some are desired."""
    if replicas.ready == 0 and replicas.desired > 0:
        return Grace(GraceStatus.DOWN, replicas.describe_waiting("No replicas are ready"))
    if waiting := describe_unobserved_spec(live, replicas.kind):
        return Grace(GraceStatus.DEGRADED, waiting)
    if replicas.ready != replicas.desired:
        return Grace(GraceStatus.DEGRADED, replicas.describe_waiting(f"{replicas.kind} partially available"))
    if replicas.pending_rollout:
        return Grace(GraceStatus.DEGRADED, replicas.describe_waiting(replicas.pending_rollout))
    return Grace(GraceStatus.HEALTHY, replicas.healthy_reason)


def evaluate_suspension(live: Object, kind: str) -> Suspension:
    """Return Suspended when the kind's controller has observed the scale to zero and no replica is left."""
    if waiting := describe_unobserved_spec(live, kind):
        return Suspension(SuspensionStatus.SUSPENDING, waiting)
    running = read_integer(live, "status", "replicas")
    if running > 0:
        return Suspension(
            SuspensionStatus.SUSPENDING, f"Waiting for replicas to scale down, {running} replicas still running."
        )
    return Suspension(SuspensionStatus.SUSPENDED, f"{kind} scaled to zero")
