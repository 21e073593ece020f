"""Which shards a replica campaigns for, and which it hands over. Pure.

All replicas see the same Leases: one for each shard, one for each member. Each works out the same targets from them:
every member gets the whole part of shards : members, and the rest goes to those who hold most already, so that as few
as possible change hands. A shard that nobody holds is for the members below their target, each of whom takes its own
slice of them. A member above its target hands over, but only when every shard is held and the picture has not changed
for a while: then there is somebody who waits for it, and nothing flaps while replicas come and go.

The views of two replicas may differ for a moment. That costs a refused write or a detour of a shard, never two holders:
who holds a shard is decided by its Lease alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from konverge.kube import Object, ObjectKey
from konverge.runtime.election.lease_candidate import LeaseObservation, LeaseRecord
from konverge.runtime.election.options import LeaseTiming
from konverge.runtime.election.shard_ranges import compute_hash, compute_range

__all__ = ["LABEL", "ShardPlan", "ShardView", "build_member_lease_name", "build_shard_lease_name"]

LABEL = "konverge-sharding"
"""The label by which the Leases of one sharding are found; its value is the sharding's name."""

# A picture counts as settled after so many retry periods: by then whoever was about to act on it has done so.
_STEADY_AFTER_RETRIES = 2

# A member that has been dead for so many times the lease duration is not coming back: its Lease is swept.
_SWEPT_AFTER_DURATIONS = 4


def build_shard_lease_name(name: str, shard: int, shards: int) -> str:
    """What the Lease of a shard is called."""
    return f"{name}-shard-{shard}-of-{shards}"


def build_member_lease_name(name: str, shards: int, identity: str) -> str:
    """What the Lease of a member is called: an identity is no object's name, its hash is.

    Those who divide the owners into another number of shards are no members: nobody waits for them to take one.
    """
    return f"{name}-member-of-{shards}-{compute_hash(identity):016x}"


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """What a replica should do now.

    Args:
        campaign: The shards to try to get.
        hand_over: The shards to give up, after their passes have ended.
        sweep: Leases of members that are dead for long, as they were read: to delete.
        members: How many replicas there are.
    """

    campaign: frozenset[int]
    hand_over: frozenset[int]
    sweep: tuple[Object, ...]
    members: int


class ShardView:
    """What one replica has seen of the Leases of its sharding.

    Args:
        name: The sharding's name.
        shards: How many there are.
        identity: The replica.
        timing: The three times.
    """

    def __init__(self, name: str, shards: int, identity: str, timing: LeaseTiming) -> None:
        self._name = name
        self._shards = shards
        self._identity = identity
        self._timing = timing
        self._leases: dict[str, Object] = {}
        self._seen: dict[str, LeaseObservation] = {}
        self._first_look: float | None = None
        self._picture: tuple[Any, ...] = ()
        self._same_since = 0.0
        self._unheld_since: dict[int, float] = {}

    def update(self, leases: Iterable[Object], now: float) -> None:
        """Take in all Leases of the sharding, as they were listed; `now` is after the answer came."""
        self._leases = {ObjectKey.of(lease).name: lease for lease in leases}
        records = {name: LeaseRecord.from_lease(lease) for name, lease in self._leases.items()}
        self._seen = {
            name: self._seen[name].update(record, now) if name in self._seen else LeaseObservation(record, now)
            for name, record in records.items()
        }
        self._first_look = now if self._first_look is None else self._first_look
        unheld = [shard for shard in range(self._shards) if not self._find_holder(shard, now)]
        self._unheld_since = {shard: self._unheld_since.get(shard, now) for shard in unheld}
        picture = (self._list_members(now), tuple(self._find_holder(shard, now) for shard in range(self._shards)))
        if picture != self._picture:
            self._picture, self._same_since = picture, now

    def get_lease(self, shard: int) -> Object | None:
        """The Lease of a shard as it was last listed."""
        return self._leases.get(build_shard_lease_name(self._name, shard, self._shards))

    def compute_seconds_to_change(self, now: float) -> float:
        """How long until a Lease that is held now runs out, if nobody renews it."""
        ends = (seen.compute_expiry(self._timing.lease_duration) for seen in self._seen.values())
        return min((end - now for end in ends if end > now), default=math.inf)

    def find_rivals(self, shards: Iterable[int], now: float) -> list[str]:
        """The Leases that are held and whose range overlaps that of one of the shards, in another division than ours.

        Replicas that divide the owners into another number of shards hold Leases of other names: nothing but looking
        keeps both from working on one owner.
        """
        ranges = [compute_range(shard, self._shards) for shard in shards]
        found = []
        for name, seen in self._seen.items():
            other = self._parse_lease_name(name)
            if other is None or other[1] == self._shards or self._is_over(seen, now):
                continue
            their_start, their_end = compute_range(*other)
            if any(their_start < end and start < their_end for start, end in ranges):
                found.append(name)
        return sorted(found)

    def plan(self, held: frozenset[int], now: float) -> ShardPlan:
        """What to do, for a replica that holds these shards by its own knowledge."""
        members = self._list_members(now)
        if self._first_look is None or now < self._first_look + self._timing.retry_period:
            return ShardPlan(
                frozenset(), frozenset(), (), len(members)
            )  # let others show up that start at the same time
        holders = {shard: self._find_holder(shard, now) for shard in range(self._shards)}
        for shard in range(self._shards):
            if shard in held:
                holders[shard] = self._identity
            elif holders[shard] == self._identity:
                holders[shard] = ""  # not renewed any more, and not ours by what we know ourselves
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
        """The identities of those who are there, and of this replica, in their order."""
        prefix = f"{self._name}-member-of-{self._shards}-"
        alive = {
            seen.record.holder
            for name, seen in self._seen.items()
            if name.startswith(prefix) and not self._is_over(seen, now)
        }
        return tuple(sorted(alive | {self._identity}))

    def _find_holder(self, shard: int, now: float) -> str:
        """Who holds a shard; empty for nobody."""
        seen = self._seen.get(build_shard_lease_name(self._name, shard, self._shards))
        return "" if seen is None or self._is_over(seen, now) else seen.record.holder

    def _is_over(self, seen: LeaseObservation, now: float) -> bool:
        return now >= seen.compute_expiry(self._timing.lease_duration)

    def _compute_targets(self, counts: Mapping[str, int]) -> dict[str, int]:
        whole, rest = divmod(self._shards, len(counts))
        by_share = sorted(counts, key=lambda member: (-counts[member], member))
        return {member: whole + (place < rest) for place, member in enumerate(by_share)}

    def _select_own_shards(self, unheld: list[int], counts: Mapping[str, int], targets: Mapping[str, int]) -> set[int]:
        """The slice of the unheld shards that is this replica's."""
        begin = 0
        for member in sorted(counts):
            missing = max(0, targets[member] - counts[member])
            if member == self._identity:
                return set(unheld[begin : begin + missing])
            begin += missing
        return set()

    def _find_orphans(self, unheld: list[int], now: float) -> set[int]:
        """Shards whose time should have come: whoever was to take them does not."""
        return {shard for shard in unheld if now >= self._unheld_since.get(shard, now) + self._timing.lease_duration}

    def _select_excess(
        self,
        held: frozenset[int],
        counts: Mapping[str, int],
        targets: Mapping[str, int],
        unheld: list[int],
        now: float,
    ) -> list[int]:
        is_settled = now >= self._same_since + _STEADY_AFTER_RETRIES * self._timing.retry_period
        if unheld or not is_settled:
            return []
        return sorted(held)[targets[self._identity] :] if counts[self._identity] > targets[self._identity] else []

    def _find_dead_members(self, members: tuple[str, ...], now: float) -> list[Object]:
        if members[0] != self._identity:
            return []  # one sweeper is enough
        prefix = f"{self._name}-member-of-"  # of whatever division
        patience = _SWEPT_AFTER_DURATIONS * self._timing.lease_duration
        return [
            self._leases[name]
            for name, seen in sorted(self._seen.items())
            if name.startswith(prefix) and self._is_over(seen, now) and now >= seen.since + patience
        ]

    def _parse_lease_name(self, name: str) -> tuple[int, int] | None:
        """The shard and the number of shards that a Lease's name says."""
        prefix, of, shards = name.removeprefix(f"{self._name}-shard-").rpartition("-of-")
        if not (of and prefix.isdecimal() and shards.isdecimal() and int(shards) > int(prefix)):
            return None
        return int(prefix), int(shards)
