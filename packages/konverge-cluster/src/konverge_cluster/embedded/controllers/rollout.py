"""The arithmetic of a Deployment's rollout: which of its ReplicaSets gets which size next.

Pure numbers. The answers are new sizes by name; what is not named stays as it is, and an empty answer means that
nothing can be done until pods become available or go away.
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
    """How far a rollout may stray from the wanted number of replicas.

    Attributes:
        desired: ``spec.replicas``.
        surge: How many pods there may be more.
        unavailable: How many may be missing.
    """

    desired: int
    surge: int
    unavailable: int

    @classmethod
    def from_spec(cls, spec: Mapping[str, Any]) -> RolloutLimits:
        """Those of a Deployment's spec. Percentages are of the wanted number: the surge rounds up, the rest down.

        Both may come out as zero, with which nothing could ever move; then one pod may be missing.
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
        """How many pods there may be at most."""
        return self.desired + self.surge

    @property
    def min_available(self) -> int:
        """How many pods must stay available."""
        return self.desired - self.unavailable


@dataclass(frozen=True, slots=True)
class ReplicaSetSize:
    """A ReplicaSet in numbers.

    Attributes:
        name: Its name.
        replicas: How many pods it is told to have.
        available: How many of them are available.
        previous_max_replicas: What `Limits.most` was when it was last sized (its ``max-replicas`` annotation); 0 when
        unknown.
    """

    name: str
    replicas: int
    available: int = 0
    previous_max_replicas: int = 0


def read_replicas(workload: Mapping[str, Any]) -> int:
    """How many pods a Deployment, ReplicaSet or StatefulSet is told to have."""
    return int(workload["spec"].get("replicas", 1))


def compute_new_size(limits: RolloutLimits, new: ReplicaSetSize, all_replicas: int) -> int:
    """How large the new ReplicaSet may be while all of them together have so many replicas."""
    if new.replicas >= limits.desired:
        return limits.desired
    room = limits.max_replicas - all_replicas
    return new.replicas + max(0, min(room, limits.desired - new.replicas))


def compute_rolling_sizes(limits: RolloutLimits, new: ReplicaSetSize, old: Sequence[ReplicaSetSize]) -> dict[str, int]:
    """One step of a rolling update.

    Args:
        limits: What the Deployment allows.
        new: The ReplicaSet of the present template.
        old: The others that have replicas, oldest first.
    """
    total = new.replicas + sum(each.replicas for each in old)
    size = compute_new_size(limits, new, total)
    if size != new.replicas:
        return {new.name: size}
    # Unavailable pods of the new ReplicaSet are still to come: nothing may be given up for them.
    spare = total - limits.min_available - (new.replicas - new.available)
    if spare <= 0:
        return {}
    sizes = {each.name: each.replicas for each in old}
    # First what is broken anyway: it would block the rollout, and nobody misses it.
    for each in old:
        given_up = min(spare, each.replicas - each.available) if each.replicas > each.available else 0
        sizes[each.name] -= given_up
        spare -= given_up
    left = [replace(each, replicas=sizes[each.name]) for each in old]
    spare = new.available + sum(each.available for each in left) - limits.min_available
    for each in left:
        given_up = max(0, min(spare, each.replicas))
        sizes[each.name] -= given_up
        spare -= given_up
    return {each.name: sizes[each.name] for each in old if sizes[each.name] != each.replicas}


def compute_proportional_sizes(
    limits: RolloutLimits, sets: Sequence[ReplicaSetSize], total_before: int
) -> dict[str, int]:
    """Share a changed number of replicas among ReplicaSets that are in the middle of a rollout.

    Args:
        limits: What the Deployment allows now.
        sets: Those that have replicas, the newest first.
        total_before: The replicas that the Deployment's status counts: the base where `Sized.previous_max_replicas` is
        unknown.
    """
    allowed = limits.max_replicas if limits.desired > 0 else 0
    change = allowed - sum(each.replicas for each in sets)
    # Growing starts with the newest of the largest, shrinking with the oldest of the largest.
    ordered = sorted(sets if change > 0 else list(reversed(sets)), key=lambda each: -each.replicas)
    sizes = {each.name: each.replicas for each in ordered}
    if change == 0 or not ordered:
        return sizes
    given = 0
    for each in ordered:
        share = _compute_fraction(limits, each, total_before)
        share = min(share, change - given) if change > 0 else max(share, change - given)
        sizes[each.name] += share
        given += share
    first = ordered[0].name
    sizes[first] = max(0, sizes[first] + change - given)
    return sizes


def _compute_fraction(limits: RolloutLimits, each: ReplicaSetSize, total_before: int) -> int:
    if limits.desired == 0:
        return -each.replicas
    base = each.previous_max_replicas or total_before
    if base == 0:
        return 0
    # Half a replica rounds away from zero.
    return math.floor(each.replicas * limits.max_replicas / base + 0.5) - each.replicas


def _resolve_percentage(value: int | str, total: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value.removesuffix("%")) * total
    return -(-share // 100) if up else share // 100
