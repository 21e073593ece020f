"""The status of a Deployment: counts, ``Available``, ``Progressing``. Pure.

Reasons and messages are those of the real controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from konverge._internal.kube import Object, parse_time
from konverge_cluster._internal.embedded.controllers.rollout import RolloutLimits, read_replicas
from konverge_cluster._internal.embedded.controllers.workload_conditions import (
    build_deployment_condition,
    find_condition,
    list_conditions,
    with_condition,
    without_condition,
)

__all__ = [
    "build_deployment_status",
    "build_rollout_status",
    "compute_seconds_to_deadline",
    "has_deadline",
    "is_complete",
]

# This value of ``progressDeadlineSeconds`` (the largest int32) disables the deadline.
_NO_DEADLINE = 2**31 - 1


def build_deployment_status(deployment: Object, sets: Sequence[Object], new: Object | None, now: datetime) -> Object:
    """Return the status with pod counts and ``Available``; ``Progressing`` does not change.

    Args:
        deployment: The stored Deployment.
        sets: All its ReplicaSets.
        new: The ReplicaSet of the current template, if it exists.
        now: The time of the reconcile.
    """
    limits = RolloutLimits.from_spec(deployment["spec"])
    available = _sum_status_field(sets, "availableReplicas")
    counts = {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": _sum_status_field(sets, "replicas"),
        "updatedReplicas": _sum_status_field([new], "replicas") if new is not None else 0,
        "readyReplicas": _sum_status_field(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(read_replicas(replica_set) for replica_set in sets) - available),
    }
    status: Object = {name: count for name, count in counts.items() if count}
    status["terminatingReplicas"] = _sum_status_field(sets, "terminatingReplicas")
    if available >= limits.min_available:
        verdict = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        verdict = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    status["conditions"] = with_condition(
        list_conditions(deployment), build_deployment_condition("Available", *verdict, now)
    )
    collisions = (deployment.get("status") or {}).get("collisionCount")
    if collisions:
        status["collisionCount"] = collisions
    return status


def build_rollout_status(deployment: Object, sets: Sequence[Object], new: Object | None, now: datetime) -> Object:
    """Return the status with ``Progressing`` too: complete, in progress, or past the deadline."""
    status = build_deployment_status(deployment, sets, new, now)
    conditions: list[Object] = status["conditions"]
    progressing = find_condition(list_conditions(deployment), "Progressing")
    settled = (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and progressing is not None
        and progressing["reason"] == "NewReplicaSetAvailable"
    )
    named = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if not has_deadline(deployment):
        conditions = without_condition(conditions, "Progressing")
    elif settled:
        pass
    elif is_complete(deployment, status):
        message = f"{named} has successfully progressed."
        condition = build_deployment_condition("Progressing", "True", "NewReplicaSetAvailable", message, now)
        conditions = with_condition(conditions, condition)
    elif _has_progressed(deployment.get("status") or {}, status):
        message = f"{named} is progressing."
        condition = build_deployment_condition("Progressing", "True", "ReplicaSetUpdated", message, now)
        # Each progress restarts the deadline, so the same reason is written again.
        conditions = with_condition(conditions, condition, renew=True)
    elif _is_past_deadline(deployment, progressing, now):
        message = f"{named} has timed out progressing."
        condition = build_deployment_condition("Progressing", "False", "ProgressDeadlineExceeded", message, now)
        conditions = with_condition(conditions, condition)
    failures = [
        found
        for replica_set in [new, *sets]
        if replica_set and (found := find_condition(list_conditions(replica_set), "ReplicaFailure"))
    ]
    if failures:
        found = failures[0]
        failure = build_deployment_condition("ReplicaFailure", found["status"], found["reason"], found["message"], now)
        conditions = with_condition(conditions, failure)
    else:
        conditions = without_condition(conditions, "ReplicaFailure")
    status["conditions"] = conditions
    return status


def is_complete(deployment: Object, status: Object) -> bool:
    """Return True if all desired pods have the current template and are available, and no others remain."""
    desired = deployment["spec"].get("replicas", 1)
    counts = ("updatedReplicas", "replicas", "availableReplicas")
    return (
        all(status.get(name, 0) == desired for name in counts)
        and status.get("observedGeneration", 0) >= deployment["metadata"]["generation"]
    )


def _has_progressed(before: Object, after: Object) -> bool:
    def old_pods(status: Object) -> int:
        return int(status.get("replicas", 0) - status.get("updatedReplicas", 0))

    grown = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_pods(after) < old_pods(before) or any(after.get(name, 0) > before.get(name, 0) for name in grown)


def has_deadline(deployment: Object) -> bool:
    """Return True if the Deployment has a progress deadline."""
    seconds: int = deployment["spec"].get("progressDeadlineSeconds", _NO_DEADLINE)
    return seconds != _NO_DEADLINE


def _is_past_deadline(deployment: Object, progressing: Object | None, now: datetime) -> bool:
    if progressing is None or progressing["reason"] == "NewReplicaSetAvailable":
        return False
    if progressing["reason"] == "ProgressDeadlineExceeded":
        return True
    deadline = timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"])
    return parse_time(progressing["lastUpdateTime"]) + deadline < now


def compute_seconds_to_deadline(deployment: Object, status: Object, now: datetime) -> float | None:
    """Return the seconds until the deadline must be checked; None if no deadline is running."""
    progressing = find_condition(status["conditions"], "Progressing")
    if progressing is None or not has_deadline(deployment) or deployment["spec"].get("paused"):
        return None
    if progressing["reason"] in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    if is_complete(deployment, status):
        return None
    deadline = timedelta(seconds=deployment["spec"]["progressDeadlineSeconds"])
    left = (parse_time(progressing["lastUpdateTime"]) + deadline - now).total_seconds()
    # One second more: the comparison with the deadline is strict, and the times have whole seconds.
    return max(0.0, left) + 1.0


def _sum_status_field(sets: Sequence[Object], count: str) -> int:
    return sum((replica_set.get("status") or {}).get(count, 0) for replica_set in sets)
