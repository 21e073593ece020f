"""The shards that a replica campaigns for, and those that it hands over. Pure.

All replicas see the same Leases: one per shard and one per member. Each computes the same targets from them. Every
member gets the integer quotient of shards and members. The remainder goes to the members that hold most already, so
that as few shards as possible change their holder.

An unheld shard is for the members below their target: each takes its own slice. A member above its target hands over,
but only when every shard is held and the state has not changed for a while. Then another member certainly waits for it,
and shards do not flap while replicas start and stop.

The views of two replicas may differ for a moment. That costs a refused write or a detour of a shard, never two holders:
only the Lease of a shard decides who holds it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.runtime.election.lease_candidate import LeaseObservation, LeaseRecord
from konverge._internal.runtime.election.options import LeaseTiming
from konverge._internal.runtime.election.shard_ranges import compute_hash, compute_range

__all__ = ["LABEL", "ShardPlan", "ShardView", "build_member_lease_name", "build_shard_lease_name"]

LABEL = "konverge-sharding"
"""Label that identifies the Leases of one sharding; its value is the sharding's name."""

# Number of unchanged retry periods after which the state counts as steady: by then every replica has acted on it.
_STEADY_AFTER_RETRIES = 2

# Multiple of the lease duration after which the Lease of a dead member is deleted.
_SWEPT_AFTER_DURATIONS = 4


def build_shard_lease_name(name: str, shard: int, shards: int) -> str:
    """Return the name of the Lease of a shard."""
    return f"{name}-shard-{shard}-of-{shards}"


def build_member_lease_name(name: str, shards: int, identity: str) -> str:
    """Return the name of the Lease of a member. It contains a hash, since an identity may be an invalid name.

    Replicas with another number of shards are not members: no replica waits for them to take a shard.
    """
    return f"{name}-member-of-{shards}-{compute_hash(identity):016x}"


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """The next actions of a replica.

    Args:
        campaign: The shards to campaign for.
        hand_over: The shards to release after their reconciles have ended.
        sweep: Leases of long dead members, as they were read, for deletion.
        members: Number of replicas.
    """

    campaign: frozenset[int]
    hand_over: frozenset[int]
    sweep: tuple[Object, ...]
    members: int


class ShardView:
    """The Leases of a sharding as one replica has seen them.

    Args:
        name: The sharding's name.
        shards: Number of shards.
        identity: The identity of the replica.
        timing: The three times.
    """

    def __init__(self, name: str, shards: int, identity: str, timing: LeaseTiming) -> None:
        self._name = name
        self._shards = shards
        self._identity = identity
        self._timing = timing
        self._leases: dict[str, Object] = {}
        self._seen: dict[str, LeaseObservation] = {}
        self._first_listed_at: float | None = None
        self._state: tuple[Any, ...] = ()
        self._same_since = 0.0
        self._unheld_since: dict[int, float] = {}

    def update(self, leases: Iterable[Object], now: float) -> None:
        """Record all Leases of the sharding, as they were listed; `now` is the time after the response."""
        self._leases = {ObjectKey.of(lease).name: lease for lease in leases}
        records = {name: LeaseRecord.from_lease(lease) for name, lease in self._leases.items()}
        self._seen = {
            name: self._seen[name].update(record, now) if name in self._seen else LeaseObservation(record, now)
            for name, record in records.items()
        }
        self._first_listed_at = now if self._first_listed_at is None else self._first_listed_at
        unheld = [shard for shard in range(self._shards) if not self._find_holder(shard, now)]
        self._unheld_since = {shard: self._unheld_since.get(shard, now) for shard in unheld}
        state = (self._list_members(now), tuple(self._find_holder(shard, now) for shard in range(self._shards)))
        if state != self._state:
            self._state, self._same_since = state, now

    def get_lease(self, shard: int) -> Object | None:
        """Return the Lease of a shard as it was last listed."""
        return self._leases.get(build_shard_lease_name(self._name, shard, self._shards))

    def compute_seconds_to_change(self, now: float) -> float:
        """Return the seconds until the first held Lease expires without a renewal."""
        ends = (seen.compute_expiry(self._timing.lease_duration) for seen in self._seen.values())
        return min((end - now for end in ends if end > now), default=math.inf)

    def find_rivals(self, shards: Iterable[int], now: float) -> list[str]:
        """Return the held Leases of rival divisions whose range overlaps one of the shards.

        Replicas that divide the owners into another number of shards hold Leases with other names: only this check
        keeps both from reconciling one owner.
        """
        ranges = [compute_range(shard, self._shards) for shard in shards]
        rivals = []
        for name, seen in self._seen.items():
            other = self._parse_lease_name(name)
            if other is None or other[1] == self._shards or self._is_over(seen, now):
                continue
            their_start, their_end = compute_range(*other)
            if any(their_start < end and start < their_end for start, end in ranges):
                rivals.append(name)
        return sorted(rivals)

    def plan(self, held: frozenset[int], now: float) -> ShardPlan:
        """Return the next actions of a replica that holds these shards by its own knowledge."""
        members = self._list_members(now)
        if self._first_listed_at is None or now < self._first_listed_at + self._timing.retry_period:
            return ShardPlan(
                frozenset(), frozenset(), (), len(members)
            )  # wait for other replicas that start at the same time
        holders = {shard: self._find_holder(shard, now) for shard in range(self._shards)}
        for shard in range(self._shards):
            if shard in held:
                holders[shard] = self._identity
            elif holders[shard] == self._identity:
                holders[shard] = ""  # not renewed any more, and not held by this replica's own knowledge
        counts = {member: sum(1 for holder in holders.values() if holder == member) for member in members}
        targets = self._compute_targets(counts)
        unheld = [shard for shard, holder in holders.items() if not holder]
        return ShardPlan(
            frozenset(self._select_own_shards(unheld, counts, targets) | self._find_orphans(unheld, now)),
            frozenset(self._select_excess(held, counts, targets, unheld, now)),
            tuple(self._find_dead_members(members, now)),
            len(members),
        )

    def _list_members(self, now: float) -> tuple[str, ...]:
        """Return the identities of the live members, including this replica, in order."""
        prefix = f"{self._name}-member-of-{self._shards}-"
        alive = {
            seen.record.holder
            for name, seen in self._seen.items()
            if name.startswith(prefix) and not self._is_over(seen, now)
        }
        return tuple(sorted(alive | {self._identity}))

    def _find_holder(self, shard: int, now: float) -> str:
        """Return the identity of a shard's holder; empty for none."""
        seen = self._seen.get(build_shard_lease_name(self._name, shard, self._shards))
        return "" if seen is None or self._is_over(seen, now) else seen.record.holder

    def _is_over(self, seen: LeaseObservation, now: float) -> bool:
        return now >= seen.compute_expiry(self._timing.lease_duration)

    def _compute_targets(self, counts: Mapping[str, int]) -> dict[str, int]:
        whole, rest = divmod(self._shards, len(counts))
        by_share = sorted(counts, key=lambda member: (-counts[member], member))
        return {member: whole + (place < rest) for place, member in enumerate(by_share)}

    def _select_own_shards(self, unheld: list[int], counts: Mapping[str, int], targets: Mapping[str, int]) -> set[int]:
        """Return this replica's slice of the unheld shards."""
        begin = 0
        for member in sorted(counts):
            missing = max(0, targets[member] - counts[member])
            if member == self._identity:
                return set(unheld[begin : begin + missing])
            begin += missing
        return set()

    def _find_orphans(self, unheld: list[int], now: float) -> set[int]:
        """Return shards that stayed unheld too long: the members that were to take them do not."""
        return {shard for shard in unheld if now >= self._unheld_since.get(shard, now) + self._timing.lease_duration}

    def _select_excess(
        self,
        held: frozenset[int],
        counts: Mapping[str, int],
        targets: Mapping[str, int],
        unheld: list[int],
        now: float,
    ) -> list[int]:
        is_steady = now >= self._same_since + _STEADY_AFTER_RETRIES * self._timing.retry_period
        if unheld or not is_steady:
            return []
        return sorted(held)[targets[self._identity] :] if counts[self._identity] > targets[self._identity] else []

    def _find_dead_members(self, members: tuple[str, ...], now: float) -> list[Object]:
        if members[0] != self._identity:
            return []  # one member deletes for all
        prefix = f"{self._name}-member-of-"  # of any division
        delay = _SWEPT_AFTER_DURATIONS * self._timing.lease_duration
        return [
            self._leases[name]
            for name, seen in sorted(self._seen.items())
            if name.startswith(prefix) and self._is_over(seen, now) and now >= seen.since + delay
        ]

    def _parse_lease_name(self, name: str) -> tuple[int, int] | None:
        """Return the shard and the number of shards in a Lease's name."""
        prefix, of, shards = name.removeprefix(f"{self._name}-shard-").rpartition("-of-")
        if not (of and prefix.isdecimal() and shards.isdecimal() and int(shards) > int(prefix)):
            return None
        return int(prefix), int(shards)
