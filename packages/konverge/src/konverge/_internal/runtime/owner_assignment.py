"""The owners that this replica may reconcile, as Leases decide: all, none, or those of some shards.

A replica that does not lead caches everything all the same, so that it can take over at once. A replica with some of
the shards caches only the objects of these shards.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol, TypeAlias

from konverge._internal.client import Client
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.runtime.election import (
    LeaderElection,
    Leadership,
    ShardAssignment,
    Sharding,
    ShardListener,
    compute_shard,
    leader_election,
    sharding,
)
from konverge._internal.runtime.election.shard_view import build_shard_lease_name
from konverge.clock import Clock, Entropy

__all__ = [
    "AssignmentListener",
    "LeaderAssignment",
    "OwnerAssignment",
    "OwnerFilter",
    "ShardedAssignment",
    "build_assignment",
]

OwnerFilter: TypeAlias = Callable[[str], bool]
"""A part of the owners: returns for a UID whether the owner belongs to it."""


class AssignmentListener(Protocol):
    """Listener for owners that are assigned and revoked; `konverge.runtime.Process` implements it."""

    def on_assigned(self, part: OwnerFilter) -> None:
        """Reconcile these owners from now on."""

    async def extend_caches(self) -> None:
        """Cache more owners and their objects than before; return when they are cached."""

    async def on_revoked(self, part: OwnerFilter) -> None:
        """Stop reconciling these owners; return when no reconcile of them is running."""

    def on_lost(self, part: OwnerFilter) -> None:
        """Cancel the reconciles of these owners: another replica may reconcile them already."""


class OwnerAssignment(Protocol):
    """Decides which owners this replica may reconcile, and restricts the writes of its client to them.

    It is a `WritePermit` itself: for writes that belong to no particular owner.
    """

    def is_ours(self, uid: str) -> bool:
        """Return whether a reconcile of the owner with the UID may begin now."""

    def is_cached(self, uid: str) -> bool:
        """Return whether the caches contain the owner with the UID and its objects."""

    def get_permit(self, uid: str) -> WritePermit:
        """Return the permit to write for the owner with the UID; a reconcile takes it at its start."""

    def seconds_left(self) -> float:
        """Return the seconds for which this replica may write at all."""

    @property
    def leases(self) -> dict[str, bool]:
        """The names of the Leases, each with whether this replica holds it."""

    def participate(self, listener: AssignmentListener) -> AbstractAsyncContextManager[None]:
        """Participate while the block runs, and release all Leases at its end.

        Args:
            listener: Receives the assignments and revocations.
        """


def build_assignment(
    options: LeaderElection | Sharding, client: Client, *, clock: Clock, entropy: Entropy, in_thread: bool
) -> OwnerAssignment:
    """Build the assignment for these Leases.

    Args:
        options: The Leases.
        client: The cluster; the Leases are renewed through separate connections.
        clock: Source of time.
        entropy: Source of randomness.
        in_thread: Renew in a separate thread; not for simulated time.
    """
    new_client = client.with_own_connections
    if isinstance(options, LeaderElection):
        elect = partial(leader_election, new_client, options, clock=clock, entropy=entropy, in_thread=in_thread)
        return LeaderAssignment(options.name, elect)
    share = partial(sharding, new_client, options, clock=clock, entropy=entropy, in_thread=in_thread)
    return ShardedAssignment(options.name, options.shards, share)


class LeaderAssignment:
    """Assignment of all owners to the leader.

    Args:
        lease: The name of the Lease.
        elect: Participates in the election (`runtime.election.leader_election`).
    """

    def __init__(self, lease: str, elect: Callable[[], AbstractAsyncContextManager[Leadership]]) -> None:
        self._lease = lease
        self._elect = elect
        self._leadership = Leadership("")
        self._has_taken_over = False

    def is_ours(self, uid: str) -> bool:
        """Return whether this replica leads and has taken over."""
        return self._has_taken_over and self._leadership.is_held

    def is_cached(self, uid: str) -> bool:
        """Return True: every replica caches all owners, to be ready."""
        return True

    def get_permit(self, uid: str) -> WritePermit:
        """Return the permit of the present term."""
        return self._leadership.permit

    def seconds_left(self) -> float:
        """Return the seconds for which this replica may write."""
        return self._leadership.permit.seconds_left()

    @property
    def leases(self) -> dict[str, bool]:
        """The one Lease, with whether this replica holds it."""
        return {self._lease: self._leadership.is_held}

    @asynccontextmanager
    async def participate(self, listener: AssignmentListener) -> AsyncIterator[None]:
        """Stand by or lead while the block runs."""
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
    """Assignment of the owners in the shards that this replica holds.

    Args:
        name: Base of the names of the Leases.
        shards: Number of shards.
        share: Participates in their distribution (`runtime.election.sharding`).
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
        """Return whether this replica has taken over the owner's shard and is not handing it over."""
        shard = compute_shard(uid, self._shards)
        return shard in self._taken_over and shard in self._shard_assignment.held and shard not in self._handing_over

    def is_cached(self, uid: str) -> bool:
        """Return whether this replica holds the owner's shard and is to keep it."""
        shard = compute_shard(uid, self._shards)
        return shard in self._shard_assignment.held and shard not in self._handing_over

    def get_permit(self, uid: str) -> WritePermit:
        """Return the permit of the shard's present term."""
        return self._shard_assignment.get_permit(compute_shard(uid, self._shards))

    def seconds_left(self) -> float:
        """Return the seconds for which this replica may write for at least one shard."""
        held = (self._shard_assignment.get_permit(shard).seconds_left() for shard in self._shard_assignment.held)
        return max(held, default=0.0)

    @property
    def leases(self) -> dict[str, bool]:
        """One Lease per shard, with whether this replica holds it."""
        held = self._shard_assignment.held
        return {build_shard_lease_name(self._name, shard, self._shards): shard in held for shard in range(self._shards)}

    @asynccontextmanager
    async def participate(self, listener: AssignmentListener) -> AsyncIterator[None]:
        """Hold a fair share of the shards while the block runs."""
        self._listener = listener
        async with self._share(self) as self._shard_assignment, asyncio.TaskGroup() as tasks:
            taking = tasks.create_task(self._take_over_new(listener), name="take over shards")
            watching = tasks.create_task(self._watch_renewal(), name="watch the renewal of Leases")
            try:
                yield
            finally:
                taking.cancel()
                watching.cancel()

    # Methods of `runtime.election.ShardListener`.

    def on_acquired(self, shard: int) -> None:
        """Take over the shard: read its owners, then reconcile them."""
        self._handing_over.discard(shard)
        self._new.add(shard)
        self._has_new.set()

    def on_lost(self, shard: int) -> None:
        """Drop the shard, and cancel the reconciles of its owners."""
        self._handing_over.discard(shard)
        self._taken_over.discard(shard)
        if self._listener is not None:
            self._listener.on_lost(self._build_filter({shard}))

    async def on_release(self, shard: int) -> None:
        """Hand the shard over; return when the reconciles of its owners have ended."""
        self._handing_over.add(shard)
        self._taken_over.discard(shard)
        if self._listener is not None:
            await self._listener.on_revoked(self._build_filter({shard}))

    async def _take_over_new(self, listener: AssignmentListener) -> None:
        """Take over new shards: several that arrive together cost one list, not one list each."""
        while True:
            await self._has_new.wait()
            self._has_new.clear()
            new, self._new = self._new, set()
            await listener.extend_caches()
            # Not earlier: a reconcile before that would consider an object absent that is not listed yet.
            self._taken_over |= new & self._shard_assignment.held
            listener.on_assigned(self._build_filter(new))

    async def _watch_renewal(self) -> None:
        while True:
            await self._shard_assignment.wait_until_changed()

    def _build_filter(self, shards: set[int]) -> OwnerFilter:
        return lambda uid: compute_shard(uid, self._shards) in shards


def _match_all(uid: str) -> bool:
    return True
