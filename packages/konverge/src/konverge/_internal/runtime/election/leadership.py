"""The interface for the runtime: whether this process leads, or which shards it holds."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Protocol, TypeVar

from konverge._internal.cancellation import await_shielded
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.runtime.election.campaigns import (
    Campaign,
    CampaignListener,
    LeaderCampaign,
    ShardCampaign,
    ShardClient,
)
from konverge._internal.runtime.election.options import LeaderElection, Sharding, generate_identity
from konverge._internal.runtime.election.renewal_thread import ClosableClient, RenewalThread
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import KonvergeError

__all__ = ["Leadership", "NoPermit", "ShardAssignment", "ShardListener", "leader_election", "sharding"]

_log = logging.getLogger("konverge.runtime")


class NoPermit:
    """The permit of a process without a term: it never allows a write."""

    def seconds_left(self) -> float:
        """Return 0: no write is allowed."""
        return 0.0


class ShardListener(Protocol):
    """Listener for shards, called in the event loop that uses the assignment. It must not raise."""

    def on_acquired(self, shard: int) -> None:
        """Reconcile the shard's owners from now on."""

    def on_lost(self, shard: int) -> None:
        """Cancel the reconciles of the shard's owners at once; their writes would not be sent."""

    async def on_release(self, shard: int) -> None:
        """Start no further reconcile for the shard; return when the running ones have ended. Then it is handed over.

        The call is cancelled if it exceeds the release deadline or if the shard is lost meanwhile; `on_lost` follows.
        """


class ShardAssignment:
    """The shards that this process holds; they change as replicas start and stop.

    Args:
        identity: The identity of this process.
        listener: Receives the changes.
    """

    def __init__(self, identity: str, listener: ShardListener) -> None:
        self.identity = identity
        self._listener = listener
        self._permits: dict[int, WritePermit] = {}
        self._changed = asyncio.Event()
        self._problem: BaseException | None = None

    @property
    def held(self) -> frozenset[int]:
        """The shards that this process holds. A shard in handover is included until its reconciles have ended."""
        return frozenset(self._permits)

    def get_permit(self, shard: int) -> WritePermit:
        """Return the permit to write for owners of the shard in the present term; a reconcile takes it at its start."""
        return self._permits.get(shard, NoPermit())

    async def wait_until_changed(self) -> None:
        """Wait until a shard is acquired or lost.

        Raises:
            KonvergeError: The renewal ended with an unexpected error: this process will hold nothing again.
        """
        await self._changed.wait()
        self._raise_crash()

    def on_acquired(self, shard: int, permit: WritePermit) -> None:
        """Record a new shard; the campaign calls this."""
        self._permits[shard] = permit
        self._notify()
        self._listener.on_acquired(shard)

    def on_lost(self, shard: int) -> None:
        """Record a lost shard; the campaign calls this."""
        if self._permits.pop(shard, None) is not None:
            self._notify()
            self._listener.on_lost(shard)

    async def on_release(self, shard: int) -> None:
        """Hand over a shard; the campaign calls this."""
        await self._listener.on_release(shard)
        self._permits.pop(shard, None)
        self._notify()

    def record_crash(self, error: BaseException) -> None:
        """Record that the renewal ended with an unexpected error: all shards are lost."""
        self._problem = error
        for shard in self.held:
            self.on_lost(shard)
        self._notify()

    def _raise_crash(self) -> None:
        if self._problem is not None:
            raise KonvergeError(
                "the renewal of Leases ended with an unexpected error: see its cause"
            ) from self._problem

    def _notify(self) -> None:
        """Wake the present waiters; later waiters wait for the next change."""
        self._changed.set()
        self._changed = asyncio.Event()
        if self._problem is not None:
            self._changed.set()


class _NullListener:
    """The listener of a process that polls its leadership."""

    def on_acquired(self, shard: int) -> None:
        """Ignore the event: `Leadership` polls."""

    def on_lost(self, shard: int) -> None:
        """Ignore the event: `Leadership` polls."""

    async def on_release(self, shard: int) -> None:
        """Ignore the event: `Leadership` polls."""


class Leadership:
    """The leadership of this process. After a loss the process stands by again.

    Args:
        identity: The identity of this process.
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.assignment = ShardAssignment(identity, _NullListener())
        self._begun: WritePermit = NoPermit()

    @property
    def is_held(self) -> bool:
        """True while this process leads."""
        return bool(self.assignment.held)

    @property
    def permit(self) -> WritePermit:
        """The permit to write in the present term: read it after `wait_until_held`, once per term.

        After the end of the term it never allows a write again; the next term has another permit.
        """
        return self.assignment.get_permit(0)

    async def wait_until_held(self) -> None:
        """Wait until this process leads.

        Raises:
            KonvergeError: The renewal ended with an unexpected error.
        """
        while not self.is_held:
            await self.assignment.wait_until_changed()
        self._begun = self.permit

    async def wait_until_lost(self) -> None:
        """Wait until the end of the term for which `wait_until_held` returned last.

        It returns at once if that term has ended since, even if another term has begun. The work of the old term must
        stop before the next call of `wait_until_held`.
        """
        while self.permit is self._begun:
            try:
                await self.assignment.wait_until_changed()
            except KonvergeError:
                return


C = TypeVar("C", bound=ClosableClient)


class _ElectionClient(ClosableClient, ShardClient, Protocol):
    """The client methods that both kinds of election need (`konverge.client.Client` implements them)."""


@asynccontextmanager
async def leader_election(
    new_client: Callable[[], _ElectionClient],
    options: LeaderElection,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    in_thread: bool = True,
    exit_process: Callable[[int], object] = os._exit,
) -> AsyncIterator[Leadership]:
    """Participate in a leader election while the block runs; a normal exit releases the Lease.

    An exit by an exception or by cancellation lets the Lease expire instead: the API server may still process a write
    that was cut short, and the next leader must not begin before its end.

    All work that needs the Lease must have ended when the block exits.

    Args:
        new_client: Creates the client for renewals: with separate connections and without a permit
            (`Client.with_own_connections`). It is closed at the end.
        options: The Lease and its times.
        clock: Source of time.
        entropy: Source of randomness.
        in_thread: Renew in a separate thread, so that a blocked event loop does not stop the renewal; False renews in
            this loop, as in simulated time.
        exit_process: Ends a process whose main loop does not process the loss of the Lease.
    """
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    named = replace(options, identity=options.identity or generate_identity(entropy))
    leadership = Leadership(named.identity)

    def build_campaign(client: _ElectionClient, listener: CampaignListener) -> Campaign:
        return LeaderCampaign(client, named, named.identity, listener, clock=clock, entropy=entropy)

    async with _renewal_task(
        new_client,
        build_campaign,
        leadership.assignment,
        options,
        clock=clock,
        in_thread=in_thread,
        exit_process=exit_process,
    ):
        yield leadership


@asynccontextmanager
async def sharding(
    new_client: Callable[[], _ElectionClient],
    options: Sharding,
    listener: ShardListener,
    *,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
    in_thread: bool = True,
    exit_process: Callable[[int], object] = os._exit,
) -> AsyncIterator[ShardAssignment]:
    """Hold a fair share of the shards while the block runs; a normal exit releases all of them.

    An exit by an exception or by cancellation lets the Leases expire, as in `leader_election`.

    All work for the shards must have ended when the block exits; `on_release` is not called then.

    Args:
        new_client: Creates the client for renewals: with separate connections and without a permit
            (`Client.with_own_connections`). It is closed at the end.
        options: The Leases and their times.
        listener: Receives the changes of shards.
        clock: Source of time.
        entropy: Source of randomness.
        in_thread: Renew in a separate thread, so that a blocked event loop does not stop the renewal; False renews in
            this loop, as in simulated time.
        exit_process: Ends a process whose main loop does not process the loss of a Lease.
    """
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    named = replace(options, identity=options.identity or generate_identity(entropy))
    assignment = ShardAssignment(named.identity, listener)

    def build_campaign(client: _ElectionClient, messenger: CampaignListener) -> Campaign:
        return ShardCampaign(client, named, named.identity, messenger, clock=clock, entropy=entropy)

    async with _renewal_task(
        new_client, build_campaign, assignment, options, clock=clock, in_thread=in_thread, exit_process=exit_process
    ):
        yield assignment


@asynccontextmanager
async def _renewal_task(
    new_client: Callable[[], C],
    new_campaign: Callable[[C, CampaignListener], Campaign],
    assignment: ShardAssignment,
    options: LeaderElection | Sharding,
    *,
    clock: Clock,
    in_thread: bool,
    exit_process: Callable[[int], object],
) -> AsyncIterator[None]:
    """Run the campaign beside the block, and stop it afterwards."""
    stop_timeout = 2 * options.renew_deadline
    if in_thread:
        async with RenewalThread(
            new_client,
            new_campaign,
            assignment,
            clock=clock,
            bound=options.renew_deadline,
            grace=options.lease_duration - options.renew_deadline,
            stop_timeout=stop_timeout,
            crashed=assignment.record_crash,
            exit_process=exit_process,
        ):
            yield
        return
    client = new_client()
    campaign = new_campaign(client, assignment)
    running = asyncio.create_task(campaign.run(), name="renewal of Leases")
    running.add_done_callback(partial(_report_crash, assignment))
    releases = False  # if the block is cut short: the API server may still process its requests
    try:
        yield
        releases = True
    finally:
        try:
            await _stop_campaign(campaign, running, stop_timeout, releases=releases)
        finally:
            running.cancel()
            try:
                await await_shielded(asyncio.wait([running]))
            finally:
                await client.close()


async def _stop_campaign(
    campaign: Campaign, running: asyncio.Task[None], timeout: timedelta, *, releases: bool
) -> None:
    campaign.stop(releases=releases)
    if (await asyncio.wait([running], timeout=timeout.total_seconds()))[1]:
        _log.warning("the Leases were not released within %g s: they expire by themselves", timeout.total_seconds())


def _report_crash(assignment: ShardAssignment, running: asyncio.Task[None]) -> None:
    if not running.cancelled() and (error := running.exception()) is not None:
        _log.error("the renewal of Leases ended with an unexpected error", exc_info=error)
        assignment.record_crash(error)
