"""What the runtime sees: whether this process leads, or which shards it holds."""

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

from konverge.cancellation import await_shielded
from konverge.client.write_permit import WritePermit
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import KonvergeError
from konverge.runtime.election.campaigns import Campaign, CampaignListener, LeaderCampaign, ShardCampaign, ShardClient
from konverge.runtime.election.options import LeaderElection, Sharding, generate_identity
from konverge.runtime.election.renewal_thread import ClosableClient, RenewalThread

__all__ = ["Leadership", "NoPermit", "ShardAssignment", "ShardListener", "leader_election", "sharding"]

_log = logging.getLogger("konverge.runtime.election")


class NoPermit:
    """The permission of a process that holds nothing: none."""

    def seconds_left(self) -> float:
        """None."""
        return 0.0


class ShardListener(Protocol):
    """What the runtime does when shards come and go; called in the loop that uses the assignment. May not raise."""

    def on_acquired(self, shard: int) -> None:
        """The shard's owners are ours from now on."""

    def on_lost(self, shard: int) -> None:
        """They are not ours any more: cancel their passes, at once; nothing that they write would be sent."""

    async def on_release(self, shard: int) -> None:
        """Start no further pass for the shard and return when those under way have ended; then it is handed over.

        Cancelled when that takes longer than the release deadline, or the shard is lost meanwhile; `lost` follows.
        """


class ShardAssignment:
    """The shards that this process holds; it changes as replicas come and go.

    Args:
        identity: Who this process is.
        listener: What is done when one comes or goes.
    """

    def __init__(self, identity: str, listener: ShardListener) -> None:
        self.identity = identity
        self._listener = listener
        self._permits: dict[int, WritePermit] = {}
        self._changed = asyncio.Event()
        self._problem: BaseException | None = None

    @property
    def held(self) -> frozenset[int]:
        """The shards that are ours. A shard that is being handed over is, until its passes have ended."""
        return frozenset(self._permits)

    def get_permit(self, shard: int) -> WritePermit:
        """The permission to write for owners of that shard, for the present term; a pass takes it when it begins."""
        return self._permits.get(shard, NoPermit())

    async def wait_until_changed(self) -> None:
        """Wait until a shard comes or goes.

        Raises:
            KonvergeError: The renewal has ended by a mistake: nothing will be held again.
        """
        await self._changed.wait()
        self._raise_crash()

    def on_acquired(self, shard: int, permit: WritePermit) -> None:
        """Called by the campaign."""
        self._permits[shard] = permit
        self._notify()
        self._listener.on_acquired(shard)

    def on_lost(self, shard: int) -> None:
        """Called by the campaign."""
        if self._permits.pop(shard, None) is not None:
            self._notify()
            self._listener.on_lost(shard)

    async def on_release(self, shard: int) -> None:
        """Called by the campaign."""
        await self._listener.on_release(shard)
        self._permits.pop(shard, None)
        self._notify()

    def record_crash(self, error: BaseException) -> None:
        """Called when the renewal has ended by a mistake."""
        self._problem = error
        for shard in self.held:
            self.on_lost(shard)
        self._notify()

    def _raise_crash(self) -> None:
        if self._problem is not None:
            raise KonvergeError("the renewal of Leases has ended by a mistake, see its cause") from self._problem

    def _notify(self) -> None:
        """Wake who waits; who waits from now on waits for the next change."""
        self._changed.set()
        self._changed = asyncio.Event()
        if self._problem is not None:
            self._changed.set()


class _NullListener:
    """The listener of a process that asks instead of being told."""

    def on_acquired(self, shard: int) -> None:
        """Nothing to do."""

    def on_lost(self, shard: int) -> None:
        """Nothing to do."""

    async def on_release(self, shard: int) -> None:
        """Nothing to do."""


class Leadership:
    """Whether this process leads. It may come and go: after a loss the process stands by again.

    Args:
        identity: Who this process is.
    """

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self.assignment = ShardAssignment(identity, _NullListener())
        self._begun: WritePermit = NoPermit()

    @property
    def is_held(self) -> bool:
        """Tell whether this process leads."""
        return bool(self.assignment.held)

    @property
    def permit(self) -> WritePermit:
        """The permission to write, for the present term: take it after `wait_until_held`, once for each term.

        It never holds again once the term is over; the next term has another one.
        """
        return self.assignment.get_permit(0)

    async def wait_until_held(self) -> None:
        """Wait until this process leads.

        Raises:
            KonvergeError: The renewal has ended by a mistake.
        """
        while not self.is_held:
            await self.assignment.wait_until_changed()
        self._begun = self.permit

    async def wait_until_lost(self) -> None:
        """Wait until the term is over for which `wait_until_held` returned last.

        Returns at once if that has happened since, also if another term has begun: what belongs to the one that is
        over is to be stopped, before `wait_until_held` is asked again.
        """
        while self.permit is self._begun:
            try:
                await self.assignment.wait_until_changed()
            except KonvergeError:
                return


C = TypeVar("C", bound=ClosableClient)


class _ElectionClient(ClosableClient, ShardClient, Protocol):
    """What both need of a client (`konverge.client.Client` is one)."""


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
    """Take part in the election of a leader as long as the block runs; leaving it in good order gives the Lease up.

    Leaving it by an exception, or by being cancelled, lets the Lease run out instead: a write that was cut short may
    still be at work in the API server, and the next leader must not begin before it has ended.

    What the Lease is for must have ended when the block is left.

    Args:
        new_client: Makes the client that renews: with connections of its own and no permit
            (`Client.with_own_connections`). It is closed at the end.
        options: The Lease and its times.
        clock: The time.
        entropy: The randomness.
        in_thread: Renew in a thread of its own, which a blocked loop does not keep from renewing; False to do it in
            this loop, as in simulated time.
        exit_process: What ends a process whose main loop does not hear that the Lease is lost.
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
    """Hold a fair share of the shards as long as the block runs; leaving it in good order gives all of them up.

    Leaving it by an exception, or by being cancelled, lets the Leases run out, as `leader_election` says.

    What the shards are for must have ended when the block is left; then the listener is not asked to release.

    Args:
        new_client: Makes the client that renews: with connections of its own and no permit
            (`Client.with_own_connections`). It is closed at the end.
        options: The Leases and their times.
        listener: What is done when a shard comes or goes.
        clock: The time.
        entropy: The randomness.
        in_thread: Renew in a thread of its own, which a blocked loop does not keep from renewing; False to do it in
            this loop, as in simulated time.
        exit_process: What ends a process whose main loop does not hear that a Lease is lost.
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
    releases = False  # if the block is cut short: what it was doing may go on in the API server
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
        _log.warning("the Leases were not given up in %g s: they run out", timeout.total_seconds())


def _report_crash(assignment: ShardAssignment, running: asyncio.Task[None]) -> None:
    if not running.cancelled() and (error := running.exception()) is not None:
        _log.error("the renewal of Leases has ended by a mistake", exc_info=error)
        assignment.record_crash(error)
