"""Campaigns that hold Leases for a process: one Lease for leader election, several for sharding.

A campaign runs in the event loop that renews, which may belong to another thread
(`runtime.election.renewal_thread`). It reports to a `CampaignListener`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial
from typing import Protocol

from konverge._internal.client import ObjectList
from konverge._internal.client.write_permit import WritePermit
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.election.lease_candidate import LEASE, LeaseCandidate
from konverge._internal.runtime.election.lease_holder import LeaseClient, LeaseHolder
from konverge._internal.runtime.election.options import LeaderElection, LeaseTiming, Sharding
from konverge._internal.runtime.election.shard_view import (
    LABEL,
    ShardPlan,
    ShardView,
    build_member_lease_name,
    build_shard_lease_name,
)
from konverge.clock import Clock, Entropy
from konverge.errors import ForbiddenError, KonvergeError, format_error

__all__ = ["Campaign", "CampaignListener", "LeaderCampaign", "ShardCampaign", "ShardClient"]

_log = logging.getLogger("konverge.runtime")

_PAUSE = (0.7, 0.95)  # fractions of the retry period, between two checks
_YIELD = (1.0, 4.0)  # multiples of the retry period, after a shard was released to a rival division


class CampaignListener(Protocol):
    """Listener for the shards that this process holds; a leader holds shard 0 of 1. It must not raise."""

    def on_acquired(self, shard: int, permit: WritePermit) -> None:
        """Take the shard, for a term that the permit covers."""

    def on_lost(self, shard: int) -> None:
        """Cancel all work for the shard: the term is over and the permit has expired."""

    async def on_release(self, shard: int) -> None:
        """Prepare the handover to another replica: start no work for the shard; return when all its work has ended.

        This process holds the shard until this returns. The call is cancelled if it takes too long or if the shard is
        lost meanwhile; then `on_lost` follows.
        """


class Campaign(Protocol):
    """Port for a campaign that holds Leases."""

    async def run(self) -> None:
        """Hold and renew until `stop`, then release everything. Cancellation leaves the Leases to expire."""

    def stop(self, *, releases: bool = True) -> None:
        """Let `run` return.

        Args:
            releases: Release everything, so that other replicas take over at once: the work that needed the Leases has
                ended. False lets the Leases expire: the API server may still process a cancelled request.
        """

    def suspend(self, *, suspended: bool) -> None:
        """Send no requests, so that the terms expire; or resume."""


class ShardClient(LeaseClient, Protocol):
    """The client methods that sharding needs in addition."""

    async def list(self, gvk: GroupVersionKind, *, namespace: str, label_selector: str) -> ObjectList:
        """Read a collection in its present state from the server."""

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str | None = None) -> object:
        """Delete an object if it has the UID."""


class LeaderCampaign:
    """Campaign for one Lease.

    Args:
        client: The cluster.
        options: The author's options.
        identity: The identity of this process.
        listener: Receives the events of shard 0.
        clock: Source of time.
        entropy: Source of the jitter of delays.
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
        """End the campaign; release the Lease if requested."""
        self._releases = releases
        self._stopping.set()

    def suspend(self, *, suspended: bool) -> None:
        """Send no requests, or resume."""
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
    """Campaign for this replica's share of the shards; it hands over the shards beyond that share.

    A shard counts as held after two conditions: this replica holds its Lease, and a list of all Leases that began after
    that shows no rival. A rival divides the owners into another number of shards and holds an overlapping range. Of two
    rivals that acquire at one time, at least one sees the other.

    Args:
        client: The cluster.
        options: The author's options.
        identity: The identity of this process.
        listener: Receives the events of each shard.
        clock: Source of time.
        entropy: Source of the jitter of delays.
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
        # Shards whose Lease this replica holds and that are not reported yet, each with the time of its acquisition.
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
                running = [tasks.create_task(holder.run()) for holder in holders]
                running.append(tasks.create_task(self._balance(tasks)))
                await self._stopping.wait()
                for task in (*running, *self._handing_over.values()):
                    task.cancel()
            if self._releases:
                await self._leave()
        finally:
            for holder in holders:
                holder.abandon()

    def stop(self, *, releases: bool = True) -> None:
        """End the campaign; release all Leases if requested."""
        self._releases = releases
        self._stopping.set()

    def suspend(self, *, suspended: bool) -> None:
        """Send no requests, or resume."""
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
        requested_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._timing.renew_deadline / 2):
                leases = await self._client.list(
                    LEASE, namespace=self._options.namespace, label_selector=f"{LABEL}={self._options.name}"
                )
        except TimeoutError:
            self._log_problem(f"cannot list the Leases of {self._options.name}: no response in time")
            return
        except KonvergeError as error:
            self._log_problem(self._describe_refusal(error))
            return
        except Exception as error:  # noqa: BLE001  # an unexpected client error ends no term: another list follows soon
            problem = f"cannot list the Leases of {self._options.name}: unexpected error {type(error).__name__}"
            if problem != self._last_problem:
                self._last_problem = problem
                _log.error("%s", problem, exc_info=error)
            return
        self._last_problem = ""
        now = self._clock.monotonic()
        self._view.update(leases.items, now)
        for shard, holder in enumerate(self._shards):
            holder.candidate.observe(self._view.get_lease(shard), requested_at, now)
        self._confirm_leases(requested_at, now)
        self._carry_out_plan(self._view.plan(self._list_held_shards(), now), now, tasks)

    def _confirm_leases(self, requested_at: float, now: float) -> None:
        for shard, since in list(self._unconfirmed.items()):
            if requested_at < since:
                self._refresh_now.set()  # list again at once
            elif self._view.find_rivals([shard], now):
                # The rival may yield to this replica: both must not retry at one moment.
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
            should_campaign = (
                shard in plan.campaign and now >= self._yields_until and not self._view.find_rivals([shard], now)
            )
            # A candidate with a term, or with a running release, is not disturbed.
            if (
                holder.term is None
                and should_campaign != holder.candidate.is_campaigning
                and shard not in self._handing_over
            ):
                holder.candidate.campaign(wanted=should_campaign)
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
                "%s: handover: running reconciles did not end within %s: the Lease is left to expire",
                candidate.key,
                self._options.release_deadline,
            )
            candidate.stop_renewing()
        except Exception:  # noqa: BLE001  # unknown work may still run: treat it as not ended
            _log.exception(
                "%s: handover: stopping the running reconciles failed: the Lease is left to expire", candidate.key
            )
            candidate.stop_renewing()
        else:
            self._reported_shards.discard(shard)
            candidate.release()
        self._shards[shard].notify()

    def _on_handover(self, shard: int, _: asyncio.Task[None]) -> None:
        del self._handing_over[shard]

    async def _leave(self) -> None:
        """Release the member Lease first, then release the shards to the remaining replicas."""
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
        """Delete the Lease of a member that is gone; a failure is harmless."""
        try:
            async with asyncio.timeout(self._timing.renew_deadline / 2):
                await self._client.delete(LEASE, ObjectKey.of(lease), uid=str(lease["metadata"].get("uid", "")) or None)
        except Exception as error:  # noqa: BLE001  # a Lease that stays is harmless, whatever the error
            _log.debug("the Lease %s stays: %s", ObjectKey.of(lease), format_error(error))

    def _log_rivals(self, rivals: list[str]) -> None:
        if bool(rivals) != self._waits_for_rivals:
            self._waits_for_rivals = bool(rivals)
            if not rivals:
                return
            _log.warning(
                "%s: waiting for replicas with another number of shards than %d: they hold %s",
                self._options.name,
                self._options.shards,
                ", ".join(rivals[:5]) + (" …" if len(rivals) > 5 else ""),
            )

    def _describe_refusal(self, error: KonvergeError) -> str:
        summary = f"cannot list the Leases of {self._options.name} in {self._options.namespace}: {format_error(error)}"
        if isinstance(error, ForbiddenError):
            return (
                f'{summary}. Add to a Role in that namespace: apiGroups ["coordination.k8s.io"], resources ["leases"], '
                'verbs ["get", "list", "create", "update", "delete"]'
            )
        return summary

    def _log_problem(self, problem: str) -> None:
        if problem != self._last_problem:
            self._last_problem = problem
            _log.warning("%s", problem)


def _shorten_timing(timing: LeaseTiming) -> LeaseTiming:
    """Return the times of a member's Lease: it expires before its shards, so that they find new holders."""
    return LeaseTiming(max(1, round(timing.lease_duration * 2 / 3)), timing.renew_deadline * 2 / 3, timing.retry_period)


async def _run_until_stopped(stopping: asyncio.Event, holder: LeaseHolder) -> None:
    """Run the holder until the event is set."""
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(holder.run())
        await stopping.wait()
        running.cancel()
