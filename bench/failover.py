"""The behavior of an operator when replicas die, stop or freeze: ``python -m bench.failover``.

Real processes of ``konverge run`` work on a real control plane. The server's audit log shows the writer of each write,
since each replica has its own operator name. Each scenario is a function that the tests also run, with short leases.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from bench.replica import ProcessUsage, Replica
from bench.sample_operator import BED, is_ready, new_bed
from bench.soak import install
from konverge._internal.client.connect import connect
from konverge._internal.runtime.election import compute_shard
from konverge._internal.runtime.election.shard_view import build_shard_lease_name
from konverge.client import Client
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_cluster._internal.testing.audit_requests import AuditedRequest, read_audit_log
from konverge_cluster.controlplane import RealCluster

__all__ = [
    "FailoverBench",
    "FrozenTakeover",
    "ShardTakeover",
    "Takeover",
    "freeze_leader",
    "kill_leader",
    "kill_one_of_three",
    "stop_leader",
]

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")

_CREATING_AT_ONCE = 8
_WARM_SECONDS = 120.0
_READY_SECONDS = 240.0


@dataclass
class Takeover:
    """The takeover of one replica's work by another.

    Attributes:
        seconds: The time from the signal to the first write of the new leader.
        lease_seconds: The time from the signal to the new holder of the Lease.
        leader_writes: The number of writes of the old leader to objects of the beds.
        follower_writes: The number of writes of the new leader.
        shared_children: The children that both have written, with the result of each request.
        cut_short: The children that the new leader wrote after an unfinished request of the old one. The server aborted
            that request since its client had died, so it wrote nothing.
        shared_status: The beds whose status both have written.
        needless: Writes of the new leader for beds that were Ready at the time of the signal.
        late_writes: Writes of the old leader after the first write of the new one.
        not_ready: The beds that were not Ready at the end.
    """

    seconds: float = 0.0
    lease_seconds: float = 0.0
    leader_writes: int = 0
    follower_writes: int = 0
    shared_children: list[str] = field(default_factory=list)
    cut_short: list[str] = field(default_factory=list)
    needless: list[str] = field(default_factory=list)
    shared_status: list[str] = field(default_factory=list)
    late_writes: list[str] = field(default_factory=list)
    not_ready: list[str] = field(default_factory=list)


@dataclass
class FrozenTakeover(Takeover):
    """The takeover from a leader that was frozen and continued later.

    Attributes:
        woken_writes: Its writes after it continued and before it held the Lease again, if ever.
    """

    woken_writes: list[str] = field(default_factory=list)


@dataclass
class ShardTakeover:
    """The distribution of beds over three replicas, and the takeover of the third one's beds.

    Attributes:
        writers: The number of beds that each replica wrote while all three existed.
        shards: The number of shards of each replica at that time.
        held: The memory of each process at that time.
        objects: The number of objects in each replica's caches at that time.
        two_writers: The beds that two replicas wrote while all three existed and one held their shard all the time. A
            starved replica can lose a Lease; then the shard moves, and only `overlaps` would be wrong.
        overlaps: The beds whose old writer wrote after the new one's first write, in the whole run.
        seconds: The time from the kill until all later edited beds were Ready.
        not_ready: The beds that were not Ready at the end.
    """

    writers: Counter[str] = field(default_factory=Counter)
    shards: Counter[str] = field(default_factory=Counter)
    held: dict[str, ProcessUsage] = field(default_factory=dict)
    objects: dict[str, int] = field(default_factory=dict)
    two_writers: list[str] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    seconds: float = 0.0
    not_ready: list[str] = field(default_factory=list)


class FailoverBench:
    """A namespace with beds, and the replicas of their operator.

    Args:
        cluster: The control plane.
        client: The client of an administrator.
        namespace: The namespace; it exists and has no other user.
        folder: The folder for the replicas' logs.
        lease_seconds: The duration of the Leases.
    """

    def __init__(
        self, cluster: RealCluster, client: Client, namespace: str, folder: Path, lease_seconds: int = 15
    ) -> None:
        self._cluster = cluster
        self.client = client
        self.namespace = namespace
        self._folder = folder
        self.lease_seconds = lease_seconds
        self._begin = cluster.audit_log.stat().st_size

    def replica(self, name: str, *options: str) -> Replica:
        """Return a replica with a name that is unique across namespaces."""
        operator = f"{name}-{self.namespace}"
        options = (*options, "--lease-name", "garden", "--lease-namespace", self.namespace)
        options = (*options, "--lease-seconds", str(self.lease_seconds))
        log = self._folder / f"{operator}.log"
        return Replica(self._cluster.kubeconfig, self.namespace, log, *options, operator=operator)

    @asynccontextmanager
    async def leader_and_stand_by(self) -> AsyncIterator[tuple[Replica, Replica]]:
        """Run two replicas: the first leads, the second has full caches."""
        await install(self.client)
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(self.replica("first", "--leader-elect"))
            await self.create_owners(["warm-up"])
            await self.wait_until_ready(["warm-up"])
            second = await stack.enter_async_context(self.replica("second", "--leader-elect"))
            await self.wait_for(lambda: len({request.path for request in self.watches(second)}) >= 4)
            yield first, second

    async def create_owners(self, names: Iterable[str]) -> None:
        """Create beds, several in parallel."""
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                await self.client.create(new_bed(name, self.namespace))

        async with asyncio.TaskGroup() as workers:
            for _ in range(_CREATING_AT_ONCE):
                workers.create_task(work())

    async def change(self, names: Iterable[str], plant: str) -> None:
        """Change the plant of beds."""
        for name in names:
            await self.client.patch(
                BED, ObjectKey(self.namespace, name), {"spec": {"plant": plant}}, patch_type="merge"
            )

    async def not_ready(self, names: Iterable[str]) -> list[str]:
        """Return the beds that are not Ready for their generation."""
        beds = (await self.client.list(BED, namespace=self.namespace)).items
        ready = {bed["metadata"]["name"] for bed in beds if is_ready(bed)}
        return [name for name in names if name not in ready]

    async def wait_until_ready(self, names: Iterable[str]) -> list[str]:
        """Wait until all beds are Ready; return those that are not Ready in time."""
        wanted = list(names)
        end = time.monotonic() + _READY_SECONDS
        while (found := await self.not_ready(wanted)) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.25)
        return found

    async def wait_for(self, is_so: Callable[[], object], seconds: float = _WARM_SECONDS) -> None:
        """Wait for a condition of the audit log or a process.

        Raises:
            TimeoutError: The condition was not met in time.
        """
        async with asyncio.timeout(seconds):
            while not is_so():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def uids(self) -> dict[str, str]:
        """Return the UIDs of the beds by name."""
        beds = (await self.client.list(BED, namespace=self.namespace)).items
        return {bed["metadata"]["name"]: bed["metadata"]["uid"] for bed in beds}

    async def holders(self) -> dict[str, str]:
        """Return the holder of each Lease in the namespace."""
        leases = (await self.client.list(LEASE, namespace=self.namespace)).items
        return {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or "" for lease in leases}

    def requests(self, replica: Replica) -> list[AuditedRequest]:
        """Return the requests of a replica so far."""
        return [
            request
            for request in read_audit_log(self._cluster.audit_log, self._begin)
            if replica.is_agent(request.user_agent)
        ]

    def watches(self, replica: Replica) -> list[AuditedRequest]:
        """Return the watches of a replica, without those of Leases."""
        return [found for found in self.requests(replica) if found.verb == "watch"]

    def writes(self, replica: Replica) -> list[AuditedRequest]:
        """Return the writes of a replica to beds and their children, in the order of arrival."""
        found = [
            request
            for request in self.requests(replica)
            if request.verb not in ("get", "list", "watch")
            and f"/namespaces/{self.namespace}/" in request.path
            and "/leases" not in request.path
            and "/events" not in request.path
        ]
        return sorted(found, key=lambda request: request.time)

    def lease_writes(self, replica: Replica) -> list[AuditedRequest]:
        """Return the successful writes of a replica to Leases."""
        return [
            request
            for request in self.requests(replica)
            if request.verb not in ("get", "list", "watch") and "/leases" in request.path and request.code < 400
        ]


async def kill_leader(failover: FailoverBench, count: int = 200) -> Takeover:
    """Kill the leader with SIGKILL in the middle of `count` creations."""
    names = [f"bed-{number:03}" for number in range(count)]
    async with failover.leader_and_stand_by() as (first, second):
        planting = asyncio.create_task(failover.create_owners(names))
        # In the middle of the leader's work, not of the creation of beds.
        await failover.wait_for(lambda: len(failover.writes(first)) >= 2 * count)
        at = _send_signal(first, signal.SIGKILL)
        ready = await _list_ready(failover, names)
        await planting
        return await _wait_for_takeover(failover, first, second, names, at, ready, Takeover())


async def stop_leader(failover: FailoverBench, count: int = 50) -> Takeover:
    """Stop the leader with SIGTERM in the middle of `count` creations."""
    names = [f"bed-{number:03}" for number in range(count)]
    async with failover.leader_and_stand_by() as (first, second):
        planting = asyncio.create_task(failover.create_owners(names))
        await failover.wait_for(lambda: len(failover.writes(first)) >= 2 * count)
        at = _send_signal(first, signal.SIGTERM)
        ready = await _list_ready(failover, names)
        await planting
        return await _wait_for_takeover(failover, first, second, names, at, ready, Takeover())


async def freeze_leader(failover: FailoverBench, count: int = 100) -> FrozenTakeover:
    """Freeze the leader with SIGSTOP in the middle of `count` creations, and continue it after a takeover."""
    names = [f"bed-{number:03}" for number in range(count)]
    async with failover.leader_and_stand_by() as (first, second):
        planting = asyncio.create_task(failover.create_owners(names))
        await failover.wait_for(lambda: len(failover.writes(first)) >= 2 * count)
        at = _send_signal(first, signal.SIGSTOP)
        ready = await _list_ready(failover, names)
        await planting
        await failover.wait_for(lambda: failover.writes(second), failover.lease_seconds + 10)
        woken_at = _send_signal(first, signal.SIGCONT)
        found = FrozenTakeover()
        await _wait_for_takeover(failover, first, second, names, at, ready, found)
        await failover.change(names[:10], "rose")
        found.not_ready += await failover.wait_until_ready(names[:10])
        led_again_at = min(
            (write.time for write in failover.lease_writes(first) if write.time > woken_at), default=None
        )
        found.woken_writes = [
            write.path
            for write in failover.writes(first)
            if write.time > woken_at and (led_again_at is None or write.time < led_again_at)
        ]
        return found


async def kill_one_of_three(failover: FailoverBench, count: int = 120, shards: int = 8) -> ShardTakeover:
    """Distribute `count` beds over three replicas, kill one, and measure the takeover of its beds."""
    names = [f"bed-{number:03}" for number in range(count)]
    found = ShardTakeover()
    await install(failover.client)
    async with AsyncExitStack() as stack:
        options = ("--shards", str(shards))
        replicas = [
            await stack.enter_async_context(failover.replica(f"replica-{number}", *options)) for number in "123"
        ]
        await _wait_until_shared(failover, replicas, shards)
        transitions = await _shard_transitions(failover, shards)
        await failover.create_owners(names)
        found.not_ready += await failover.wait_until_ready(names)
        await failover.change(names, "rose")
        found.not_ready += await failover.wait_until_ready(names)
        shard_holders = await _shard_holders(failover, shards)
        found.shards = Counter(shard_holders.values())
        owners = defaultdict(set)
        for replica in replicas:
            for write in failover.writes(replica):
                owners[_find_resource_name(write)].add(replica.operator)
            found.held[replica.operator] = await replica.read_usage()
            found.objects[replica.operator] = int((await replica.metrics())["konverge_informer_objects"])
        found.writers = Counter(name for writers in owners.values() for name in writers)
        uids = await failover.uids()
        still = {
            shard
            for shard, count in (await _shard_transitions(failover, shards)).items()
            if count == transitions.get(shard)
        }
        found.two_writers = sorted(
            bed for bed, writers in owners.items() if len(writers) > 1 and compute_shard(uids[bed], shards) in still
        )

        killed = replicas[0]
        identity = _identity_of(failover, killed, shard_holders, uids, shards)
        theirs = [name for name in names if shard_holders.get(compute_shard(uids[name], shards)) == identity]
        at = time.monotonic()
        killed.process.send_signal(signal.SIGKILL)
        await failover.change(theirs, "iris")
        found.not_ready += await failover.wait_until_ready(names)
        found.seconds = time.monotonic() - at
    found.overlaps = _overlaps({replica.operator: failover.writes(replica) for replica in replicas})
    return found


async def _wait_until_shared(failover: FailoverBench, replicas: list[Replica], shards: int) -> None:
    """Wait until each replica has its share of shards for two retry periods."""
    async with asyncio.timeout(_WARM_SECONDS):
        before: dict[int, str] = {}
        while True:
            holders = await _shard_holders(failover, shards)
            counts = Counter(holders.values())
            is_balanced = len(counts) == len(replicas) and max(counts.values()) - min(counts.values()) <= 1
            if len(holders) == shards and is_balanced and holders == before:
                return
            before = holders
            await asyncio.sleep(failover.lease_seconds * 4 / 15)


async def _shard_transitions(failover: FailoverBench, shards: int) -> dict[int, int]:
    """Return the number of times that each shard's Lease changed hands."""
    leases = (await failover.client.list(LEASE, namespace=failover.namespace)).items
    counts = {lease["metadata"]["name"]: int(lease["spec"].get("leaseTransitions") or 0) for lease in leases}
    names = {shard: build_shard_lease_name("garden", shard, shards) for shard in range(shards)}
    return {shard: counts[name] for shard, name in names.items() if name in counts}


async def _shard_holders(failover: FailoverBench, shards: int) -> dict[int, str]:
    """Return the holder of each shard."""
    holders = await failover.holders()
    names = {shard: build_shard_lease_name("garden", shard, shards) for shard in range(shards)}
    return {shard: holders[name] for shard, name in names.items() if holders.get(name)}


def _identity_of(
    failover: FailoverBench, replica: Replica, holders: dict[int, str], uids: dict[str, str], shards: int
) -> str:
    """Return the identity of a replica in Leases: the holder of the shards for which it has written."""
    beds = Counter(_find_resource_name(write) for write in failover.writes(replica))
    identities = Counter(holders[compute_shard(uids[bed], shards)] for bed in beds if bed in uids)
    return identities.most_common(1)[0][0]


def _find_resource_name(write: AuditedRequest) -> str:
    """Return the name of the written bed; its children have the same name."""
    parts = write.path.split("/")
    return parts[parts.index("namespaces") + 3]


def _overlaps(writes: dict[str, list[AuditedRequest]]) -> list[str]:
    """Return the beds whose earlier writer wrote again after a later one's first write."""
    by_bed: dict[str, dict[str, list[datetime]]] = defaultdict(lambda: defaultdict(list))
    for replica, requests in writes.items():
        for request in requests:
            by_bed[_find_resource_name(request)][replica].append(request.time)
    found = []
    for bed, times in by_bed.items():
        terms = sorted((min(each), max(each)) for each in times.values())
        if any(earlier[1] >= later[0] for earlier, later in pairwise(terms)):
            found.append(bed)
    return found


def _send_signal(replica: Replica, number: signal.Signals) -> datetime:
    at = datetime.now(UTC)
    replica.process.send_signal(number)
    return at


async def _list_ready(failover: FailoverBench, names: Iterable[str]) -> set[str]:
    """Return the beds that are Ready now."""
    return set(names) - set(await failover.not_ready(names))


async def _wait_for_takeover(
    failover: FailoverBench,
    first: Replica,
    second: Replica,
    names: list[str],
    at: datetime,
    ready: set[str],
    found: Takeover,
) -> Takeover:
    """Wait until all beds are Ready, and find the writers in the audit log."""
    found.not_ready = await failover.wait_until_ready(names)
    leaders, followers = failover.writes(first), failover.writes(second)
    acquired = [write.time for write in failover.lease_writes(second) if write.time > at]
    found.leader_writes, found.follower_writes = len(leaders), len(followers)
    if followers:
        found.seconds = (followers[0].time - at).total_seconds()
        found.late_writes = [write.path for write in leaders if write.time > followers[0].time]
    if acquired:
        found.lease_seconds = (min(acquired) - at).total_seconds()
    found.needless = [write.path for write in followers if _find_resource_name(write) in ready]
    for path in sorted({write.path for write in leaders} & {write.path for write in followers}):
        if path.endswith("/status"):
            found.shared_status.append(path)
        elif _was_cut_short(path, leaders) and _was_created(path, followers):
            found.cut_short.append(_requests_for(path, leaders, followers))
        else:
            found.shared_children.append(_requests_for(path, leaders, followers))
    return found


def _was_cut_short(path: str, writes: list[AuditedRequest]) -> bool:
    """Return True if the requests for the path had no effect, since the server aborts requests of dead clients."""
    return all(write.code >= 400 for write in writes if write.path == path)


def _was_created(path: str, writes: list[AuditedRequest]) -> bool:
    """Return True if the first request for the path created the object."""
    return next(write.code for write in writes if write.path == path) == 201


def _requests_for(path: str, *replicas: list[AuditedRequest]) -> str:
    descriptions = [f"{write.verb} {write.code}" for requests in replicas for write in requests if write.path == path]
    return f"{path}: {', '.join(descriptions)}"


async def measure(lease_seconds: int) -> None:
    """Run every scenario once, on one control plane."""
    with tempfile.TemporaryDirectory(prefix="konverge-failover-") as folder:
        async with RealCluster() as cluster, connect(cluster.kubeconfig, user_agent="gardener", env={}) as client:

            async def failover(name: str) -> FailoverBench:
                await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                return FailoverBench(cluster, client, name, Path(folder), lease_seconds)

            print(f"Leases of {lease_seconds} s")
            _print("leader killed", await kill_leader(await failover("killed")))
            _print("leader stopped", await stop_leader(await failover("stopped")))
            frozen = await freeze_leader(await failover("frozen"))
            _print("leader frozen", frozen)
            print(f"  written after it was woken: {frozen.woken_writes or 'nothing'}")
            sharded = await kill_one_of_three(await failover("sharded"))
            print(f"three replicas: shards {sorted(sharded.shards.values())}")
            for name, held in sharded.held.items():
                print(
                    f"  {name}: wrote for {sharded.writers[name]} beds, holds {sharded.objects[name]} objects, "
                    f"{held.megabytes:.1f} MB, {held.tasks} tasks"
                )
            print(f"  beds with two writers: {sharded.two_writers or 'none'}; overlaps: {sharded.overlaps or 'none'}")
            print(f"  one killed: its beds, edited meanwhile, were Ready after {sharded.seconds:.1f} s")
            print(f"  not ready: {sharded.not_ready or 'none'}")


def _print(what: str, found: Takeover) -> None:
    print(
        f"{what}: the other's first write after {found.seconds:.2f} s (Lease {found.lease_seconds:.2f} s); "
        f"{found.leader_writes} + {found.follower_writes} writes"
    )
    print(f"  children written by both: {found.shared_children or 'none'}")
    print(f"  children whose first request was cut short: {found.cut_short or 'none'}")
    print(f"  statuses written by both: {len(found.shared_status)}, for Ready beds: {found.needless or 'none'}")
    print(f"  late writes: {found.late_writes or 'none'}; not ready: {found.not_ready or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.failover", description="Replicas die, stop and freeze.")
    parser.add_argument("--lease-seconds", type=int, default=15, help="the Leases' duration (default: 15)")
    asyncio.run(measure(parser.parse_args().lease_seconds))


if __name__ == "__main__":
    main()
