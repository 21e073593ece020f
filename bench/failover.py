"""What happens to the work when replicas die, stop or freeze: ``python -m bench.failover``.

Real processes of ``konverge run`` on a real control plane; who wrote what is read from the server's audit log, where
each replica is known by its operator's name. Each scenario is a function that the tests run too, with short leases.
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
from konverge.client import Client
from konverge.client.connect import connect
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.runtime.election import compute_shard
from konverge.runtime.election.shard_view import build_shard_lease_name
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.testing.audit_requests import AuditedRequest, read_audit_log

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
    """How one replica followed another.

    Attributes:
        seconds: From the signal to the first write of the one that took over.
        lease_seconds: From the signal to the moment at which the Lease was its.
        leader_writes: How many writes the old leader had done of the beds' objects.
        follower_writes: How many the new one did.
        shared_children: The children that both have written, with what each request came to.
        cut_short: The children that the new one wrote after a request of the old one's that the server gave up, since
            whoever had sent it was dead: nothing was written by that.
        shared_status: The beds whose status both have written.
        needless: What the new one wrote for beds that were Ready when the signal was sent.
        late_writes: What the old leader wrote after the new one's first write.
        not_ready: The beds that were not Ready in the end.
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
    """The same of a leader that stood still, and was woken after another had taken over.

    Attributes:
        woken_writes: What it wrote after it was woken, and before the Lease was its again, if it ever was.
    """

    woken_writes: list[str] = field(default_factory=list)


@dataclass
class ShardTakeover:
    """How three replicas shared the beds out, and two of them those of the third.

    Attributes:
        writers: How many beds' objects each replica wrote while all three were there.
        shards: How many shards each held then.
        held: What each process held in memory then.
        objects: How many objects each had in its caches then.
        two_writers: The beds that were written by two replicas while all three were there.
        overlaps: The beds whose old writer wrote after the new one's first write, in the whole run.
        seconds: From the kill until all the beds that were edited afterwards were Ready.
        not_ready: The beds that were not Ready in the end.
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
    """A namespace with beds, and the replicas that look after them.

    Args:
        cluster: The control plane.
        client: An administrator's.
        namespace: Exists, and is nobody else's.
        folder: For the replicas' logs.
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
        """A replica; its name is made unique by the namespace."""
        operator = f"{name}-{self.namespace}"
        options = (*options, "--lease-name", "garden", "--lease-namespace", self.namespace)
        options = (*options, "--lease-seconds", str(self.lease_seconds))
        log = self._folder / f"{operator}.log"
        return Replica(self._cluster.kubeconfig, self.namespace, log, *options, operator=operator)

    @asynccontextmanager
    async def leader_and_stand_by(self) -> AsyncIterator[tuple[Replica, Replica]]:
        """Two replicas: the first leads, the second has warmed up."""
        await install(self.client)
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(self.replica("first", "--leader-elect"))
            await self.create_owners(["warm-up"])
            await self.wait_until_ready(["warm-up"])
            second = await stack.enter_async_context(self.replica("second", "--leader-elect"))
            await self.wait_for(lambda: len({request.path for request in self.watches(second)}) >= 4)
            yield first, second

    async def create_owners(self, names: Iterable[str]) -> None:
        """Create beds, several at once."""
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                await self.client.create(new_bed(name, self.namespace))

        async with asyncio.TaskGroup() as workers:
            for _ in range(_CREATING_AT_ONCE):
                workers.create_task(work())

    async def change(self, names: Iterable[str], plant: str) -> None:
        """Edit beds."""
        for name in names:
            await self.client.patch(
                BED, ObjectKey(self.namespace, name), {"spec": {"plant": plant}}, patch_type="merge"
            )

    async def not_ready(self, names: Iterable[str]) -> list[str]:
        """Those that are not Ready for their generation."""
        beds = (await self.client.list(BED, namespace=self.namespace)).items
        ready = {bed["metadata"]["name"] for bed in beds if is_ready(bed)}
        return [name for name in names if name not in ready]

    async def wait_until_ready(self, names: Iterable[str]) -> list[str]:
        """Wait for all of them; those that are not Ready in time."""
        wanted = list(names)
        end = time.monotonic() + _READY_SECONDS
        while (found := await self.not_ready(wanted)) and time.monotonic() < end:  # noqa: ASYNC110
            await asyncio.sleep(0.25)
        return found

    async def wait_for(self, is_so: Callable[[], object], seconds: float = _WARM_SECONDS) -> None:
        """Wait for something that the audit log or a process says.

        Raises:
            TimeoutError: It did not come.
        """
        async with asyncio.timeout(seconds):
            while not is_so():  # noqa: ASYNC110
                await asyncio.sleep(0.05)

    async def uids(self) -> dict[str, str]:
        """The beds' UIDs by name."""
        beds = (await self.client.list(BED, namespace=self.namespace)).items
        return {bed["metadata"]["name"]: bed["metadata"]["uid"] for bed in beds}

    async def holders(self) -> dict[str, str]:
        """Who holds each Lease of the namespace."""
        leases = (await self.client.list(LEASE, namespace=self.namespace)).items
        return {lease["metadata"]["name"]: lease["spec"].get("holderIdentity") or "" for lease in leases}

    def requests(self, replica: Replica) -> list[AuditedRequest]:
        """What a replica has asked for so far."""
        return [
            request
            for request in read_audit_log(self._cluster.audit_log, self._begin)
            if replica.is_agent(request.user_agent)
        ]

    def watches(self, replica: Replica) -> list[AuditedRequest]:
        """The watches that it has opened; those of Leases are not among them."""
        return [found for found in self.requests(replica) if found.verb == "watch"]

    def writes(self, replica: Replica) -> list[AuditedRequest]:
        """What it has written to beds and their children, in the order of arrival."""
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
        """What it has written to Leases with success."""
        return [
            request
            for request in self.requests(replica)
            if request.verb not in ("get", "list", "watch") and "/leases" in request.path and request.code < 400
        ]


async def kill_leader(garden: FailoverBench, count: int = 200) -> Takeover:
    """SIGKILL the leader in the middle of so many creations."""
    names = [f"bed-{number:03}" for number in range(count)]
    async with garden.leader_and_stand_by() as (first, second):
        planting = asyncio.create_task(garden.create_owners(names))
        # In the middle of its work, which is not that of whoever creates the beds.
        await garden.wait_for(lambda: len(garden.writes(first)) >= 2 * count)
        at = _send_signal(first, signal.SIGKILL)
        ready = await _list_ready(garden, names)
        await planting
        return await _wait_for_takeover(garden, first, second, names, at, ready, Takeover())


async def stop_leader(garden: FailoverBench, count: int = 50) -> Takeover:
    """SIGTERM the leader in the middle of so many creations."""
    names = [f"bed-{number:03}" for number in range(count)]
    async with garden.leader_and_stand_by() as (first, second):
        planting = asyncio.create_task(garden.create_owners(names))
        await garden.wait_for(lambda: len(garden.writes(first)) >= 2 * count)
        at = _send_signal(first, signal.SIGTERM)
        ready = await _list_ready(garden, names)
        await planting
        return await _wait_for_takeover(garden, first, second, names, at, ready, Takeover())


async def freeze_leader(garden: FailoverBench, count: int = 100) -> FrozenTakeover:
    """SIGSTOP the leader in the middle of so many creations, and wake it when another one has taken over."""
    names = [f"bed-{number:03}" for number in range(count)]
    async with garden.leader_and_stand_by() as (first, second):
        planting = asyncio.create_task(garden.create_owners(names))
        await garden.wait_for(lambda: len(garden.writes(first)) >= 2 * count)
        at = _send_signal(first, signal.SIGSTOP)
        ready = await _list_ready(garden, names)
        await planting
        await garden.wait_for(lambda: garden.writes(second), garden.lease_seconds + 10)
        woken_at = _send_signal(first, signal.SIGCONT)
        found = FrozenTakeover()
        await _wait_for_takeover(garden, first, second, names, at, ready, found)
        await garden.change(names[:10], "rose")
        found.not_ready += await garden.wait_until_ready(names[:10])
        led_again_at = min((write.time for write in garden.lease_writes(first) if write.time > woken_at), default=None)
        found.woken_writes = [
            write.path
            for write in garden.writes(first)
            if write.time > woken_at and (led_again_at is None or write.time < led_again_at)
        ]
        return found


async def kill_one_of_three(garden: FailoverBench, count: int = 120, shards: int = 8) -> ShardTakeover:
    """Three replicas share so many beds; one is killed, and the others take its over."""
    names = [f"bed-{number:03}" for number in range(count)]
    found = ShardTakeover()
    await install(garden.client)
    async with AsyncExitStack() as stack:
        options = ("--shards", str(shards))
        replicas = [await stack.enter_async_context(garden.replica(f"replica-{one}", *options)) for one in "123"]
        await _wait_until_shared(garden, replicas, shards)
        await garden.create_owners(names)
        found.not_ready += await garden.wait_until_ready(names)
        await garden.change(names, "rose")
        found.not_ready += await garden.wait_until_ready(names)
        shard_holders = await _shard_holders(garden, shards)
        found.shards = Counter(shard_holders.values())
        owners = defaultdict(set)
        for replica in replicas:
            for write in garden.writes(replica):
                owners[_find_resource_name(write)].add(replica.operator)
            found.held[replica.operator] = await replica.read_usage()
            found.objects[replica.operator] = int((await replica.metrics())["konverge_informer_objects"])
        found.writers = Counter(name for writers in owners.values() for name in writers)
        found.two_writers = sorted(bed for bed, writers in owners.items() if len(writers) > 1)

        uids = await garden.uids()
        killed = replicas[0]
        identity = _identity_of(garden, killed, shard_holders, uids, shards)
        theirs = [name for name in names if shard_holders.get(compute_shard(uids[name], shards)) == identity]
        at = time.monotonic()
        killed.process.send_signal(signal.SIGKILL)
        await garden.change(theirs, "iris")
        found.not_ready += await garden.wait_until_ready(names)
        found.seconds = time.monotonic() - at
    found.overlaps = _overlaps({replica.operator: garden.writes(replica) for replica in replicas})
    return found


async def _wait_until_shared(garden: FailoverBench, replicas: list[Replica], shards: int) -> None:
    """Wait until each replica has its share, and has kept it for two retry periods."""
    async with asyncio.timeout(_WARM_SECONDS):
        before: dict[int, str] = {}
        while True:
            holders = await _shard_holders(garden, shards)
            counts = Counter(holders.values())
            if len(holders) == shards and len(counts) == len(replicas) and "" not in counts and holders == before:
                return
            before = holders
            await asyncio.sleep(garden.lease_seconds * 4 / 15)


async def _shard_holders(garden: FailoverBench, shards: int) -> dict[int, str]:
    """Who holds each shard."""
    holders = await garden.holders()
    names = {shard: build_shard_lease_name("garden", shard, shards) for shard in range(shards)}
    return {shard: holders[name] for shard, name in names.items() if holders.get(name)}


def _identity_of(
    garden: FailoverBench, replica: Replica, holders: dict[int, str], uids: dict[str, str], shards: int
) -> str:
    """The name under which a replica holds Leases: that of whose shards it has written for."""
    beds = Counter(_find_resource_name(write) for write in garden.writes(replica))
    identities = Counter(holders[compute_shard(uids[bed], shards)] for bed in beds if bed in uids)
    return identities.most_common(1)[0][0]


def _find_resource_name(write: AuditedRequest) -> str:
    """The bed that a write was for: its children have its name."""
    parts = write.path.split("/")
    return parts[parts.index("namespaces") + 3]


def _overlaps(writes: dict[str, list[AuditedRequest]]) -> list[str]:
    """The beds whose earlier writer came back after a later one's first write."""
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


async def _list_ready(garden: FailoverBench, names: Iterable[str]) -> set[str]:
    """The beds that are Ready now."""
    return set(names) - set(await garden.not_ready(names))


async def _wait_for_takeover(
    garden: FailoverBench,
    first: Replica,
    second: Replica,
    names: list[str],
    at: datetime,
    ready: set[str],
    found: Takeover,
) -> Takeover:
    """Wait until all is Ready, and read in the audit log who did it."""
    found.not_ready = await garden.wait_until_ready(names)
    leaders, followers = garden.writes(first), garden.writes(second)
    acquired = [write.time for write in garden.lease_writes(second) if write.time > at]
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
    """Tell whether nothing came of the requests for it: the server gives up when whoever asked is gone."""
    return all(write.code >= 400 for write in writes if write.path == path)


def _was_created(path: str, writes: list[AuditedRequest]) -> bool:
    """Tell whether the first request for it made it, so that it was not there before."""
    return next(write.code for write in writes if write.path == path) == 201


def _requests_for(path: str, *replicas: list[AuditedRequest]) -> str:
    said = [f"{write.verb} {write.code}" for requests in replicas for write in requests if write.path == path]
    return f"{path}: {', '.join(said)}"


async def measure(lease_seconds: int) -> None:
    """Every scenario once, on one control plane."""
    with tempfile.TemporaryDirectory(prefix="konverge-failover-") as folder:
        async with RealCluster() as cluster, connect(cluster.kubeconfig, user_agent="gardener", env={}) as client:

            async def garden(name: str) -> FailoverBench:
                await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
                return FailoverBench(cluster, client, name, Path(folder), lease_seconds)

            print(f"Leases of {lease_seconds} s")
            _print("leader killed", await kill_leader(await garden("killed")))
            _print("leader stopped", await stop_leader(await garden("stopped")))
            frozen = await freeze_leader(await garden("frozen"))
            _print("leader frozen", frozen)
            print(f"  written after it was woken: {frozen.woken_writes or 'nothing'}")
            sharded = await kill_one_of_three(await garden("sharded"))
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
