"""The health of kinds that keep a number of replicas: one rule for converging, grace and suspension.

Converging and grace judge by the same three questions, so grace never says Healthy where converging does not:

1. Has the kind's controller seen the latest spec? Until then the status speaks of an older one.
2. Are exactly the wanted replicas ready? More than wanted is not ready either: a scale-down is still going on.
3. Is the rollout finished? What that means differs by kind; the kind says what is pending.

None of them answers Failing: a cluster goes on trying. But what its controllers report as failed is told with the
reason, because "0/3 ready" alone sends nobody to the quota that is used up.
"""

from __future__ import annotations

from typing import NamedTuple

from konverge.kube import Object, find_condition
from konverge.primitives.field_access import read_integer
from konverge.primitives.resource_protocol import (
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
    """What a kind reads from its live object."""

    kind: str
    """As in messages, for example ``StatefulSet``; in lower case it names the kind's controller."""
    desired: int
    ready: int
    pending_rollout: str
    """What the rollout waits for; empty when it is finished, or when the kind's settings say not to wait."""
    failure: str = ""
    """What the kind's controller reports as failed, told where the replicas are not ready."""
    healthy_reason: str = ALL_READY

    def describe_waiting(self, waiting: str) -> str:
        """What is waited for and, in parentheses, what failed."""
        return f"{waiting} ({self.failure})" if self.failure else waiting


def read_desired_replicas(live: Object) -> int:
    """``spec.replicas``, which the API defaults to 1."""
    return read_integer(live, "spec", "replicas", default=1)


def describe_unobserved_spec(live: Object, kind: str) -> str:
    """What to wait for while the controller has not observed the latest spec; empty when it has."""
    if read_integer(live, "status", "observedGeneration") >= read_integer(live, "metadata", "generation"):
        return ""
    return f"Waiting for {kind.lower()} controller to observe latest spec"


def describe_failed_condition(live: Object, condition_type: str, status: str) -> str:
    """``<reason>: <message>`` of the condition of that type if it has that status; empty otherwise."""
    condition = find_condition(live, condition_type)
    if condition is None or condition.status != status:
        return ""
    return ": ".join(part for part in (condition.reason, condition.message) if part)


def describe_replica_failure(live: Object) -> str:
    """Why pods cannot be created or deleted: a quota that is used up, an admission webhook that says no."""
    return describe_failed_condition(live, "ReplicaFailure", "True")


def evaluate_convergence(live: Object, operation: Operation, replicas: ReplicaCounts) -> Convergence:
    """Judge the live object by the three questions, in their order."""
    in_progress = ConvergingStatus.CREATING if operation is Operation.CREATED else ConvergingStatus.UPDATING
    if waiting := describe_unobserved_spec(live, replicas.kind):
        return Convergence(in_progress, waiting)
    if replicas.ready != replicas.desired:
        # Nothing was written in this pass, so the numbers differ because somebody or something scales.
        status = ConvergingStatus.SCALING if operation is Operation.NONE else in_progress
        return Convergence(
            status, replicas.describe_waiting(f"Waiting for replicas: {replicas.ready}/{replicas.desired} ready")
        )
    if replicas.pending_rollout:
        return Convergence(in_progress, replicas.describe_waiting(replicas.pending_rollout))
    return Convergence(ConvergingStatus.HEALTHY, replicas.healthy_reason)


def evaluate_grace(live: Object, replicas: ReplicaCounts) -> Grace:
    """Grade the live object: Down only when nothing serves although something should."""
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
    """Suspended when the kind's controller has seen that none are wanted, and none is left."""
    if waiting := describe_unobserved_spec(live, kind):
        return Suspension(SuspensionStatus.SUSPENDING, waiting)
    running = read_integer(live, "status", "replicas")
    if running > 0:
        return Suspension(
            SuspensionStatus.SUSPENDING, f"Waiting for replicas to scale down, {running} replicas still running."
        )
    return Suspension(SuspensionStatus.SUSPENDED, f"{kind} scaled to zero")
