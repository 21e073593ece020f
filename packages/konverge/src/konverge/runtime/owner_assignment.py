"""Which owners this process may reconcile, where Leases decide: all or none, or those of some shards.

A process that does not lead holds everything in memory all the same, so that it can take over at once. One that holds
some of the shards holds only what belongs to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol, TypeAlias

from konverge.client import Client
from konverge.client.write_permit import WritePermit
from konverge.clock import Clock, Entropy
from konverge.runtime.election import (
    LeaderElection,
    Leadership,
    ShardAssignment,
    Sharding,
    ShardListener,
    compute_shard,
    leader_election,
    sharding,
)
from konverge.runtime.election.shard_view import build_shard_lease_name

__all__ = [
    "AssignmentListener",
    "LeaderAssignment",
    "OwnerAssignment",
    "OwnerFilter",
    "ShardedAssignment",
    "build_assignment",
]

OwnerFilter: TypeAlias = Callable[[str], bool]
"""A part of the owners: tells by its UID whether an owner is in it."""


class AssignmentListener(Protocol):
    """What is to be done when owners come and go; `konverge.runtime.Process` does it."""

    def on_assigned(self, part: OwnerFilter) -> None:
        """These owners are this process's to reconcile from now on."""

    async def extend_caches(self) -> None:
        """More owners are to be held than before: return when they are, and what belongs to them."""

    async def on_revoked(self, part: OwnerFilter) -> None:
        """These owners are not this process's any more: return when no pass over one of them is under way."""

    def on_lost(self, part: OwnerFilter) -> None:
        """Somebody else may reconcile these owners already: cancel the passes over them."""


class OwnerAssignment(Protocol):
    """Decides which owners this process may reconcile, and lets its client write for no others.

    It is a `WritePermit` itself: to write for anybody.
    """

    def is_ours(self, uid: str) -> bool:
        """Tell whether a pass over the owner of that UID may begin now."""

    def is_cached(self, uid: str) -> bool:
        """Tell whether the caches hold the owner of that UID, and what belongs to it."""

    def get_permit(self, uid: str) -> WritePermit:
        """The permission to write for the owner of that UID; a pass takes it when it begins."""

    def seconds_left(self) -> float:
        """For how long this process may write at all."""

    @property
    def leases(self) -> dict[str, bool]:
        """The names of the Leases that matter, and whether this process holds each."""

    def participate(self, listener: AssignmentListener) -> AbstractAsyncContextManager[None]:
        """Take part while the block runs, and give everything back at its end.

        Args:
            listener: Is told meanwhile what comes and goes.
        """


def build_assignment(
    options: LeaderElection | Sharding, client: Client, *, clock: Clock, entropy: Entropy, in_thread: bool
) -> OwnerAssignment:
    """The tenure that such Leases give.

    Args:
        options: The Leases.
        client: The cluster; the Leases are renewed through connections of their own.
        clock: The time.
        entropy: The randomness.
        in_thread: Renew in a thread of its own; not in simulated time.
    """
    new_client = client.with_own_connections
    if isinstance(options, LeaderElection):
        elect = partial(leader_election, new_client, options, clock=clock, entropy=entropy, in_thread=in_thread)
        return LeaderAssignment(options.name, elect)
    share = partial(sharding, new_client, options, clock=clock, entropy=entropy, in_thread=in_thread)
    return ShardedAssignment(options.name, options.shards, share)


class LeaderAssignment:
    """All owners, or none.

    Args:
        lease: The Lease's name.
        elect: Takes part in the election (`konverge.runtime.election.leader_election`).
    """

    def __init__(self, lease: str, elect: Callable[[], AbstractAsyncContextManager[Leadership]]) -> None:
        self._lease = lease
        self._elect = elect
        self._leadership = Leadership("")
        self._has_taken_over = False

    def is_ours(self, uid: str) -> bool:
        """Tell whether this process leads, and has taken over."""
        return self._has_taken_over and self._leadership.is_held

    def is_cached(self, uid: str) -> bool:
        """Everything is held, to be ready."""
        return True

    def get_permit(self, uid: str) -> WritePermit:
        """The permission of the present term."""
        return self._leadership.permit

    def seconds_left(self) -> float:
        """For how long this process may write."""
        return self._leadership.permit.seconds_left()

    @property
    def leases(self) -> dict[str, bool]:
        """The one Lease."""
        return {self._lease: self._leadership.is_held}

    @asynccontextmanager
    async def participate(self, listener: AssignmentListener) -> AsyncIterator[None]:
        """Stand by, or lead, while the block runs."""
        async with self._elect() as self._leadership, asyncio.TaskGroup() as tasks:
            terms = tasks.create_task(self._follow_terms(listener), name="terms of leadership")
            try:
                yield
            finally:
                terms.cancel()

    async def _follow_terms(self, listener: AssignmentListener) -> None:
        while True:
            await self._leadership.wait_until_held()
            self._has_taken_over = True
            listener.on_assigned(_match_all)
            await self._leadership.wait_until_lost()
            self._has_taken_over = False
            listener.on_lost(_match_all)


class ShardedAssignment:
    """The owners of the shards that this process holds.

    Args:
        name: What the Leases are named after.
        shards: How many there are.
        share: Takes part in sharing them out (`konverge.runtime.election.sharding`).
    """

    def __init__(
        self, name: str, shards: int, share: Callable[[ShardListener], AbstractAsyncContextManager[ShardAssignment]]
    ) -> None:
        self._name = name
        self._shards = shards
        self._share = share
        self._shard_assignment = ShardAssignment("", self)
        self._listener: AssignmentListener | None = None
        self._new: set[int] = set()
        self._has_new = asyncio.Event()
        self._taken_over: set[int] = set()
        self._handing_over: set[int] = set()

    def is_ours(self, uid: str) -> bool:
        """Tell whether the owner's shard has been taken over and is not being handed over."""
        shard = compute_shard(uid, self._shards)
        return shard in self._taken_over and shard in self._shard_assignment.held and shard not in self._handing_over

    def is_cached(self, uid: str) -> bool:
        """Tell whether the owner's shard is held and is to stay."""
        shard = compute_shard(uid, self._shards)
        return shard in self._shard_assignment.held and shard not in self._handing_over

    def get_permit(self, uid: str) -> WritePermit:
        """The permission of the shard's present term."""
        return self._shard_assignment.get_permit(compute_shard(uid, self._shards))

    def seconds_left(self) -> float:
        """For how long this process may write for anybody."""
        held = (self._shard_assignment.get_permit(shard).seconds_left() for shard in self._shard_assignment.held)
        return max(held, default=0.0)

    @property
    def leases(self) -> dict[str, bool]:
        """One Lease for each shard."""
        held = self._shard_assignment.held
        return {build_shard_lease_name(self._name, shard, self._shards): shard in held for shard in range(self._shards)}

    @asynccontextmanager
    async def participate(self, listener: AssignmentListener) -> AsyncIterator[None]:
        """Hold a fair share of the shards while the block runs."""
        self._listener = listener
        async with self._share(self) as self._shard_assignment, asyncio.TaskGroup() as tasks:
            taking = tasks.create_task(self._take_over_new(listener), name="taking shards over")
            watching = tasks.create_task(self._watch_renewal(), name="watching the renewal of Leases")
            try:
                yield
            finally:
                taking.cancel()
                watching.cancel()

    # What the campaign tells (`konverge.runtime.election.ShardListener`).

    def on_acquired(self, shard: int) -> None:
        """The shard is ours: its owners are read, then reconciled."""
        self._handing_over.discard(shard)
        self._new.add(shard)
        self._has_new.set()

    def on_lost(self, shard: int) -> None:
        """The shard is not ours any more."""
        self._handing_over.discard(shard)
        self._taken_over.discard(shard)
        if self._listener is not None:
            self._listener.on_lost(self._build_filter({shard}))

    async def on_release(self, shard: int) -> None:
        """Let the passes of the shard end."""
        self._handing_over.add(shard)
        self._taken_over.discard(shard)
        if self._listener is not None:
            await self._listener.on_revoked(self._build_filter({shard}))

    async def _take_over_new(self, listener: AssignmentListener) -> None:
        """Take over what has come: several shards that come together cost one list, not one each."""
        while True:
            await self._has_new.wait()
            self._has_new.clear()
            new, self._new = self._new, set()
            await listener.extend_caches()
            # Only now: a pass before would take what is not listed yet for absent.
            self._taken_over |= new & self._shard_assignment.held
            listener.on_assigned(self._build_filter(new))

    async def _watch_renewal(self) -> None:
        while True:
            await self._shard_assignment.wait_until_changed()

    def _build_filter(self, shards: set[int]) -> OwnerFilter:
        return lambda uid: compute_shard(uid, self._shards) in shards


def _match_all(uid: str) -> bool:
    return True
