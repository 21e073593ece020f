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
from konverge.client.permits import WritePermit
from konverge.clock import Clock, Entropy
from konverge.runtime.election import (
    LeaderElection,
    Leadership,
    ShardAssignment,
    Sharding,
    ShardListener,
    leader_election,
    shard_of,
    sharding,
)
from konverge.runtime.election.shards import shard_lease

__all__ = ["LeaderTenure", "Part", "ShardTenure", "Tenure", "TenureListener", "tenure_of"]

Part: TypeAlias = Callable[[str], bool]
"""A part of the owners: tells by its UID whether an owner is in it."""


class TenureListener(Protocol):
    """What is to be done when owners come and go; `konverge.runtime.Process` does it."""

    def taken(self, part: Part) -> None:
        """These owners are this process's to reconcile from now on."""

    async def widen(self) -> None:
        """More owners are to be held than before: return when they are, and what belongs to them."""

    async def released(self, part: Part) -> None:
        """These owners are not this process's any more: return when no pass over one of them is under way."""

    def lost(self, part: Part) -> None:
        """Somebody else may reconcile these owners already: cancel the passes over them."""


class Tenure(Protocol):
    """Decides which owners this process may reconcile, and lets its client write for no others.

    It is a `WritePermit` itself: to write for anybody.
    """

    def is_ours(self, uid: str) -> bool:
        """Tell whether a pass over the owner of that UID may begin now."""

    def holds(self, uid: str) -> bool:
        """Tell whether the caches hold the owner of that UID, and what belongs to it."""

    def permit(self, uid: str) -> WritePermit:
        """The permission to write for the owner of that UID; a pass takes it when it begins."""

    def seconds_left(self) -> float:
        """For how long this process may write at all."""

    @property
    def leases(self) -> dict[str, bool]:
        """The names of the Leases that matter, and whether this process holds each."""

    def running(self, listener: TenureListener) -> AbstractAsyncContextManager[None]:
        """Take part while the block runs, and give everything back at its end.

        Args:
            listener: Is told meanwhile what comes and goes.
        """


def tenure_of(
    options: LeaderElection | Sharding, client: Client, *, clock: Clock, entropy: Entropy, in_thread: bool
) -> Tenure:
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
        return LeaderTenure(options.name, elect)
    share = partial(sharding, new_client, options, clock=clock, entropy=entropy, in_thread=in_thread)
    return ShardTenure(options.name, options.shards, share)


class LeaderTenure:
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

    def holds(self, uid: str) -> bool:
        """Everything is held, to be ready."""
        return True

    def permit(self, uid: str) -> WritePermit:
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
    async def running(self, listener: TenureListener) -> AsyncIterator[None]:
        """Stand by, or lead, while the block runs."""
        async with self._elect() as self._leadership, asyncio.TaskGroup() as tasks:
            terms = tasks.create_task(self._terms(listener), name="terms of leadership")
            try:
                yield
            finally:
                terms.cancel()

    async def _terms(self, listener: TenureListener) -> None:
        while True:
            await self._leadership.wait_until_held()
            self._has_taken_over = True
            listener.taken(_all)
            await self._leadership.wait_until_lost()
            self._has_taken_over = False
            listener.lost(_all)


class ShardTenure:
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
        self._assignment = ShardAssignment("", self)
        self._listener: TenureListener | None = None
        self._new: set[int] = set()
        self._has_new = asyncio.Event()
        self._taken_over: set[int] = set()
        self._handing_over: set[int] = set()

    def is_ours(self, uid: str) -> bool:
        """Tell whether the owner's shard has been taken over and is not being handed over."""
        shard = shard_of(uid, self._shards)
        return shard in self._taken_over and shard in self._assignment.held and shard not in self._handing_over

    def holds(self, uid: str) -> bool:
        """Tell whether the owner's shard is held and is to stay."""
        shard = shard_of(uid, self._shards)
        return shard in self._assignment.held and shard not in self._handing_over

    def permit(self, uid: str) -> WritePermit:
        """The permission of the shard's present term."""
        return self._assignment.permit(shard_of(uid, self._shards))

    def seconds_left(self) -> float:
        """For how long this process may write for anybody."""
        held = (self._assignment.permit(shard).seconds_left() for shard in self._assignment.held)
        return max(held, default=0.0)

    @property
    def leases(self) -> dict[str, bool]:
        """One Lease for each shard."""
        held = self._assignment.held
        return {shard_lease(self._name, shard, self._shards): shard in held for shard in range(self._shards)}

    @asynccontextmanager
    async def running(self, listener: TenureListener) -> AsyncIterator[None]:
        """Hold a fair share of the shards while the block runs."""
        self._listener = listener
        async with self._share(self) as self._assignment, asyncio.TaskGroup() as tasks:
            taking = tasks.create_task(self._take(listener), name="taking shards over")
            watching = tasks.create_task(self._watch_the_renewal(), name="watching the renewal of Leases")
            try:
                yield
            finally:
                taking.cancel()
                watching.cancel()

    # What the campaign tells (`konverge.runtime.election.ShardListener`).

    def acquired(self, shard: int) -> None:
        """The shard is ours: its owners are read, then reconciled."""
        self._handing_over.discard(shard)
        self._new.add(shard)
        self._has_new.set()

    def lost(self, shard: int) -> None:
        """The shard is not ours any more."""
        self._handing_over.discard(shard)
        self._taken_over.discard(shard)
        if self._listener is not None:
            self._listener.lost(self._part({shard}))

    async def release(self, shard: int) -> None:
        """Let the passes of the shard end."""
        self._handing_over.add(shard)
        self._taken_over.discard(shard)
        if self._listener is not None:
            await self._listener.released(self._part({shard}))

    async def _take(self, listener: TenureListener) -> None:
        """Take over what has come: several shards that come together cost one list, not one each."""
        while True:
            await self._has_new.wait()
            self._has_new.clear()
            new, self._new = self._new, set()
            await listener.widen()
            # Only now: a pass before would take what is not listed yet for absent.
            self._taken_over |= new & self._assignment.held
            listener.taken(self._part(new))

    async def _watch_the_renewal(self) -> None:
        while True:
            await self._assignment.wait_until_changed()

    def _part(self, shards: set[int]) -> Part:
        return lambda uid: shard_of(uid, self._shards) in shards


def _all(uid: str) -> bool:
    return True
