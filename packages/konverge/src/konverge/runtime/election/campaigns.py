"""What holds Leases on behalf of a process: of one for leader election, of several for sharding.

A campaign runs in the loop that renews, which may be that of another thread
(`konverge.runtime.election.renewal_thread`); whom
it tells is a `Listener`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial
from typing import Protocol

from konverge.client import ObjectList
from konverge.client.write_permit import WritePermit
from konverge.clock import Clock, Entropy
from konverge.errors import ForbiddenError, KonvergeError, format_error
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.runtime.election.lease_candidate import LEASE, LeaseCandidate
from konverge.runtime.election.lease_holder import LeaseClient, LeaseHolder
from konverge.runtime.election.options import LeaderElection, LeaseTiming, Sharding
from konverge.runtime.election.shard_view import (
    LABEL,
    ShardPlan,
    ShardView,
    build_member_lease_name,
    build_shard_lease_name,
)

__all__ = ["Campaign", "CampaignListener", "LeaderCampaign", "ShardCampaign", "ShardClient"]

_log = logging.getLogger("konverge.runtime.election")

_PAUSE = (0.7, 0.95)  # of the retry period, between two looks
_YIELD = (1.0, 4.0)  # of the retry period, after a shard was given back since somebody divides otherwise


class CampaignListener(Protocol):
    """Hears which shards this process holds; a leader holds shard 0 of 1. It may not raise."""

    def on_acquired(self, shard: int, permit: WritePermit) -> None:
        """The shard is ours, for a term that the permit is for."""

    def on_lost(self, shard: int) -> None:
        """The term is over and the permit has run out. What is still under way for the shard is to be cancelled."""

    async def on_release(self, shard: int) -> None:
        """Another replica is to get the shard: start nothing more for it, and return when nothing is under way.

        The shard is ours until this returns. Cancelled when that takes too long or the shard is lost meanwhile; then
        `lost` follows.
        """


class Campaign(Protocol):
    """Something that holds Leases."""

    async def run(self) -> None:
        """Hold and renew until `stop`, then give everything up. Cancelled, it leaves the Leases to run out."""

    def stop(self, *, releases: bool = True) -> None:
        """Let `run` return.

        Args:
            releases: Give everything up, so that others take over at once: what needed the Leases has ended. False
                lets the Leases run out: a request that was cancelled may still be at work in the API server.
        """

    def suspend(self, *, suspended: bool) -> None:
        """Send nothing, so that the terms run out; or go on."""


class ShardClient(LeaseClient, Protocol):
    """What sharding needs of a client besides."""

    async def list(self, gvk: GroupVersionKind, *, namespace: str, label_selector: str) -> ObjectList:
        """Read a collection, as it is at this moment."""

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str | None = None) -> object:
        """Delete an object if it has that UID."""


class LeaderCampaign:
    """Campaigns for one Lease.

    Args:
        client: The cluster.
        options: What the author chose.
        identity: Who this process is.
        listener: Is told about shard 0.
        clock: The time.
        entropy: Draws the pauses.
    """

    def __init__(
        self,
        client: LeaseClient,
        options: LeaderElection,
        identity: str,
        listener: CampaignListener,
        *,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        candidate = LeaseCandidate(
            ObjectKey(options.namespace, options.name), identity, options.timing, entropy=entropy
        )
        self._holder = LeaseHolder(client, candidate, clock=clock, on_change=self._on_holder_change)
        self._release_seconds = options.timing.renew_deadline / 2
        self._listener = listener
        self._is_reported_held: int | None = None
        self._stopping = asyncio.Event()
        self._releases = True

    async def run(self) -> None:
        """Campaign and renew until `stop`, then release."""
        try:
            await _run_until_stopped(self._stopping, self._holder)
            if self._releases:
                await self._holder.release(self._release_seconds)
        finally:
            self._holder.abandon()

    def stop(self, *, releases: bool = True) -> None:
        """End, and release if told so."""
        self._releases = releases
        self._stopping.set()

    def suspend(self, *, suspended: bool) -> None:
        """Send nothing, or go on."""
        self._holder.candidate.suspend(suspended=suspended)
        self._holder.notify()

    def _on_holder_change(self) -> None:
        if self._is_reported_held is not None:
            self._is_reported_held = None
            self._listener.on_lost(0)
        if self._holder.term is not None:
            self._is_reported_held = self._holder.term.number
            self._listener.on_acquired(0, self._holder.permit)


class ShardCampaign:
    """Campaigns for this replica's share of the shards, and hands over what is beyond it.

    A shard counts as ours when its Lease is, and when a look at all Leases that began after that shows nobody who
    divides the owners in another way and holds a part of it. Of two who do that at one time, at least one sees the
    other.

    Args:
        client: The cluster.
        options: What the author chose.
        identity: Who this process is.
        listener: Is told about each shard.
        clock: The time.
        entropy: Draws the pauses.
    """

    def __init__(
        self,
        client: ShardClient,
        options: Sharding,
        identity: str,
        listener: CampaignListener,
        *,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._client = client
        self._options = options
        self._timing = options.timing
        self._listener = listener
        self._clock = clock
        self._entropy = entropy
        self._view = ShardView(options.name, options.shards, identity, self._timing)
        self._member = self._build_holder(
            build_member_lease_name(options.name, options.shards, identity), identity, _shorten_timing(self._timing)
        )
        self._shards = [
            self._build_holder(
                build_shard_lease_name(options.name, shard, options.shards), identity, self._timing, shard
            )
            for shard in range(options.shards)
        ]
        # Shards whose Lease is ours and that nobody has been told of yet, with the moment at which they became ours.
        self._unconfirmed: dict[int, float] = {}
        self._reported_shards: set[int] = set()
        self._handing_over: dict[int, asyncio.Task[None]] = {}
        self._members = 0
        self._waits_for_rivals = False
        self._yields_until = -math.inf
        self._last_problem = ""
        self._suspended = False
        self._refresh_now = asyncio.Event()
        self._stopping = asyncio.Event()
        self._releases = True

    async def run(self) -> None:
        """Hold a fair share until `stop`, then release everything."""
        holders = [self._member, *self._shards]
        try:
            async with asyncio.TaskGroup() as tasks:
                under_way = [tasks.create_task(holder.run()) for holder in holders]
                under_way.append(tasks.create_task(self._balance(tasks)))
                await self._stopping.wait()
                for task in (*under_way, *self._handing_over.values()):
                    task.cancel()
            if self._releases:
                await self._leave()
        finally:
            for holder in holders:
                holder.abandon()

    def stop(self, *, releases: bool = True) -> None:
        """End, and release everything if told so."""
        self._releases = releases
        self._stopping.set()

    def suspend(self, *, suspended: bool) -> None:
        """Send nothing, or go on."""
        self._suspended = suspended
        for holder in (self._member, *self._shards):
            holder.candidate.suspend(suspended=suspended)
            holder.notify()

    def _build_holder(self, name: str, identity: str, timing: LeaseTiming, shard: int | None = None) -> LeaseHolder:
        candidate = LeaseCandidate(
            ObjectKey(self._options.namespace, name),
            identity,
            timing,
            entropy=self._entropy,
            labels={LABEL: self._options.name},
            campaigns=shard is None,
        )
        on_change = None if shard is None else partial(self._on_shard_change, shard)
        return LeaseHolder(self._client, candidate, clock=self._clock, on_change=on_change)

    def _list_held_shards(self) -> frozenset[int]:
        return frozenset(shard for shard, holder in enumerate(self._shards) if holder.term is not None)

    def _on_shard_change(self, shard: int) -> None:
        self._unconfirmed.pop(shard, None)
        if shard in self._reported_shards:
            self._reported_shards.discard(shard)
            if shard in self._handing_over:
                self._handing_over[shard].cancel()
            self._listener.on_lost(shard)
        if self._shards[shard].term is not None:
            self._unconfirmed[shard] = self._clock.monotonic()
        self._refresh_now.set()

    async def _balance(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._refresh_now.clear()
            if not self._suspended:
                await self._refresh_view(tasks)
            pause = self._timing.retry_period * self._entropy.uniform(*_PAUSE)
            try:
                async with asyncio.timeout(min(pause, self._view.compute_seconds_to_change(self._clock.monotonic()))):
                    await self._refresh_now.wait()
            except TimeoutError:
                continue

    async def _refresh_view(self, tasks: asyncio.TaskGroup) -> None:
        asked_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._timing.renew_deadline / 2):
                found = await self._client.list(
                    LEASE, namespace=self._options.namespace, label_selector=f"{LABEL}={self._options.name}"
                )
        except TimeoutError:
            self._log_problem(f"no answer to a list of the Leases of {self._options.name} in time")
            return
        except KonvergeError as error:
            self._log_problem(self._describe_refusal(error))
            return
        except Exception as error:  # noqa: BLE001  # a mistake in the client ends no term: there is another look soon
            problem = f"cannot list the Leases of {self._options.name}, by a mistake: {type(error).__name__}"
            if problem != self._last_problem:
                self._last_problem = problem
                _log.error("%s", problem, exc_info=error)
            return
        self._last_problem = ""
        now = self._clock.monotonic()
        self._view.update(found.items, now)
        for shard, holder in enumerate(self._shards):
            holder.candidate.observe(self._view.get_lease(shard), asked_at, now)
        self._confirm_leases(asked_at, now)
        self._carry_out_plan(self._view.plan(self._list_held_shards(), now), now, tasks)

    def _confirm_leases(self, asked_at: float, now: float) -> None:
        for shard, since in list(self._unconfirmed.items()):
            if asked_at < since:
                self._refresh_now.set()  # look again at once
            elif self._view.find_rivals([shard], now):
                # Whoever it is may be yielding to us: not both again at one moment.
                self._yields_until = now + self._timing.retry_period * self._entropy.uniform(*_YIELD)
                self._shards[shard].candidate.release()
                self._shards[shard].notify()
            else:
                del self._unconfirmed[shard]
                self._reported_shards.add(shard)
                self._listener.on_acquired(shard, self._shards[shard].permit)

    def _carry_out_plan(self, plan: ShardPlan, now: float, tasks: asyncio.TaskGroup) -> None:
        if plan.members != self._members:
            self._members = plan.members
            _log.info("%s: %d replicas share %d shards", self._options.name, plan.members, self._options.shards)
        self._log_rivals(self._view.find_rivals(plan.campaign, now))
        for shard, holder in enumerate(self._shards):
            wanted = shard in plan.campaign and now >= self._yields_until and not self._view.find_rivals([shard], now)
            # A candidate with a term, or with a release under way, is not disturbed.
            if holder.term is None and wanted != holder.candidate.is_campaigning and shard not in self._handing_over:
                holder.candidate.campaign(wanted=wanted)
                holder.notify()
        for shard in plan.hand_over - self._handing_over.keys():
            if shard in self._reported_shards and not self._shards[shard].candidate.has_let_go:
                task = tasks.create_task(self._hand_over(shard), name=f"hand over shard {shard}")
                self._handing_over[shard] = task
                task.add_done_callback(partial(self._on_handover, shard))
        for lease in plan.sweep:
            tasks.create_task(self._delete_dead_member(lease))

    async def _hand_over(self, shard: int) -> None:
        candidate = self._shards[shard].candidate
        _log.info("handing over the Lease %s", candidate.key)
        try:
            async with asyncio.timeout(self._options.release_deadline.total_seconds()):
                await self._listener.on_release(shard)
        except TimeoutError:
            _log.warning(
                "%s: what was under way had not ended after %s: the Lease is left to run out",
                candidate.key,
                self._options.release_deadline,
            )
            candidate.stop_renewing()
        except Exception:  # noqa: BLE001  # nobody knows what is still under way: as if it had not ended
            _log.exception("%s: what was under way could not be ended: the Lease is left to run out", candidate.key)
            candidate.stop_renewing()
        else:
            self._reported_shards.discard(shard)
            candidate.release()
        self._shards[shard].notify()

    def _on_handover(self, shard: int, _: asyncio.Task[None]) -> None:
        del self._handing_over[shard]

    async def _leave(self) -> None:
        """Say that this replica goes, then give its shards to those who stay."""
        seconds = self._timing.renew_deadline / 2
        self._reported_shards.clear()
        await self._member.release(seconds)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._remove_member())
            for holder in self._shards:
                tasks.create_task(holder.release(seconds))

    async def _remove_member(self) -> None:
        lease = self._member.candidate.lease
        if lease is not None:
            await self._delete_dead_member(lease)

    async def _delete_dead_member(self, lease: Object) -> None:
        """Delete the Lease of a member that is gone; nobody minds if it stays."""
        try:
            async with asyncio.timeout(self._timing.renew_deadline / 2):
                await self._client.delete(LEASE, ObjectKey.of(lease), uid=str(lease["metadata"].get("uid", "")) or None)
        except Exception as error:  # noqa: BLE001  # whatever it is, a Lease that stays harms nobody
            _log.debug("the Lease %s stays: %s", ObjectKey.of(lease), format_error(error))

    def _log_rivals(self, rivals: list[str]) -> None:
        if bool(rivals) != self._waits_for_rivals:
            self._waits_for_rivals = bool(rivals)
            if not rivals:
                return
            _log.warning(
                "%s: waiting for replicas that divide the owners into another number of shards than %d: they hold %s",
                self._options.name,
                self._options.shards,
                ", ".join(rivals[:5]) + (" …" if len(rivals) > 5 else ""),
            )

    def _describe_refusal(self, error: KonvergeError) -> str:
        what = f"cannot list the Leases of {self._options.name} in {self._options.namespace}: {format_error(error)}"
        if isinstance(error, ForbiddenError):
            return (
                f'{what}. Add to a Role in that namespace: apiGroups ["coordination.k8s.io"], resources ["leases"], '
                'verbs ["get", "list", "create", "update", "delete"]'
            )
        return what

    def _log_problem(self, problem: str) -> None:
        if problem != self._last_problem:
            self._last_problem = problem
            _log.warning("%s", problem)


def _shorten_timing(timing: LeaseTiming) -> LeaseTiming:
    """The times of a member's Lease: it runs out before the shards of a dead member do, so that they find takers."""
    return LeaseTiming(max(1, round(timing.lease_duration * 2 / 3)), timing.renew_deadline * 2 / 3, timing.retry_period)


async def _run_until_stopped(stopping: asyncio.Event, holder: LeaseHolder) -> None:
    """Run the holder until the event."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(holder.run())
        await stopping.wait()
        running.cancel()
