"""The arithmetic of a Deployment's rollout: the next sizes of its ReplicaSets.

Only numbers. Results are new sizes by name; other ReplicaSets keep their size. An empty result means that the rollout
must wait until pods become available or are deleted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "ReplicaSetSize",
    "RolloutLimits",
    "compute_new_size",
    "compute_proportional_sizes",
    "compute_rolling_sizes",
    "read_replicas",
]


@dataclass(frozen=True, slots=True)
class RolloutLimits:
    """The permitted deviation of a rollout from the desired number of replicas.

    Attributes:
        desired: ``spec.replicas``.
        surge: The maximum number of additional pods.
        unavailable: The maximum number of unavailable pods.
    """

    desired: int
    surge: int
    unavailable: int

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> RolloutLimits:
        """Return the limits of a Deployment's spec. Percentages of the desired number round up for surge, else down.

        If both are zero, no progress is possible; then one pod can be unavailable.
        """
        desired = int(spec.get("replicas", 1))
        strategy = spec.get("strategy") or {}
        if strategy.get("type") == "Recreate":
            return cls(desired, 0, 0)
        rolling = strategy.get("rollingUpdate") or {}
        surge = _resolve_percentage(rolling.get("maxSurge", "25%"), desired, up=True)
        unavailable = _resolve_percentage(rolling.get("maxUnavailable", "25%"), desired, up=False)
        if surge == 0 and unavailable == 0:
            unavailable = 1
        return cls(desired, surge, min(unavailable, desired))

    @property
    def max_replicas(self) -> int:
        """The maximum number of pods."""
        return self.desired + self.surge

    @property
    def min_available(self) -> int:
        """The minimum number of available pods."""
        return self.desired - self.unavailable


@dataclass(frozen=True, slots=True)
class ReplicaSetSize:
    """The numbers of a ReplicaSet.

    Attributes:
        name: The name of the ReplicaSet.
        replicas: The desired number of its pods.
        available: The number of available pods.
        previous_max_replicas: The value of `RolloutLimits.max_replicas` at its last resize (the ``max-replicas``
            annotation); 0 if unknown.
    """

    name: str
    replicas: int
    available: int = 0
    previous_max_replicas: int = 0


def read_replicas(workload: Mapping[str, Any]) -> int:
    """Return the desired number of pods of a Deployment, ReplicaSet or StatefulSet."""
    return int(workload["spec"].get("replicas", 1))


def compute_new_size(limits: RolloutLimits, new: ReplicaSetSize, all_replicas: int) -> int:
    """Return the maximum size of the new ReplicaSet for a total number of replicas."""
    if new.replicas >= limits.desired:
        return limits.desired
    room = limits.max_replicas - all_replicas
    return new.replicas + max(0, min(room, limits.desired - new.replicas))


def compute_rolling_sizes(limits: RolloutLimits, new: ReplicaSetSize, old: Sequence[ReplicaSetSize]) -> dict[str, int]:
    """Return the sizes after one step of a rolling update.

    Args:
        limits: The limits of the Deployment.
        new: The ReplicaSet of the current template.
        old: The others with replicas, oldest first.
    """
    total = new.replicas + sum(replica_set.replicas for replica_set in old)
    size = compute_new_size(limits, new, total)
    if size != new.replicas:
        return {new.name: size}
    # The new ReplicaSet's unavailable pods will still become ready: no available pod can be removed for them.
    spare = total - limits.min_available - (new.replicas - new.available)
    if spare <= 0:
        return {}
    sizes = {replica_set.name: replica_set.replicas for replica_set in old}
    # Unavailable pods are removed first: they would block the rollout, and do not serve.
    for replica_set in old:
        given_up = (
            min(spare, replica_set.replicas - replica_set.available)
            if replica_set.replicas > replica_set.available
            else 0
        )
        sizes[replica_set.name] -= given_up
        spare -= given_up
    remaining = [replace(replica_set, replicas=sizes[replica_set.name]) for replica_set in old]
    spare = new.available + sum(replica_set.available for replica_set in remaining) - limits.min_available
    for replica_set in remaining:
        given_up = max(0, min(spare, replica_set.replicas))
        sizes[replica_set.name] -= given_up
        spare -= given_up
    return {
        replica_set.name: sizes[replica_set.name]
        for replica_set in old
        if sizes[replica_set.name] != replica_set.replicas
    }


def compute_proportional_sizes(
    limits: RolloutLimits, sets: Sequence[ReplicaSetSize], total_before: int
) -> dict[str, int]:
    """Distribute a changed number of replicas over ReplicaSets during a rollout.

    Args:
        limits: The current limits of the Deployment.
        sets: The ReplicaSets with replicas, newest first.
        total_before: The replicas in the Deployment's status: the base if `ReplicaSetSize.previous_max_replicas` is
            unknown.
    """
    allowed = limits.max_replicas if limits.desired > 0 else 0
    change = allowed - sum(replica_set.replicas for replica_set in sets)
    # An increase starts with the newest of the largest, a decrease with the oldest of the largest.
    ordered = sorted(sets if change > 0 else list(reversed(sets)), key=lambda replica_set: -replica_set.replicas)
    sizes = {replica_set.name: replica_set.replicas for replica_set in ordered}
    if change == 0 or not ordered:
        return sizes
    distributed = 0
    for replica_set in ordered:
        share = _compute_fraction(limits, replica_set, total_before)
        share = min(share, change - distributed) if change > 0 else max(share, change - distributed)
        sizes[replica_set.name] += share
        distributed += share
    first = ordered[0].name
    sizes[first] = max(0, sizes[first] + change - distributed)
    return sizes


def _compute_fraction(limits: RolloutLimits, replica_set: ReplicaSetSize, total_before: int) -> int:
    if limits.desired == 0:
        return -replica_set.replicas
    base = replica_set.previous_max_replicas or total_before
    if base == 0:
        return 0
    # Half a replica rounds away from zero.
    return math.floor(replica_set.replicas * limits.max_replicas / base + 0.5) - replica_set.replicas


def _resolve_percentage(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * total
    return -(-share // 100) if up else share // 100
