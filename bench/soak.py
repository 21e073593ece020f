"""An operator behind a failing connection for ten minutes: ``python -m bench.soak --minutes 10``.

A hundred beds with three children each exist on a real control plane. The operator runs in its own process and connects
through `bench.fault_proxy`: watches end every 2 s, each collection gets a 410 every 10 s, and, unless ``--gentle``,
some requests get 429 and 503 and some writes are cut before and after the server has acted. Meanwhile the bench edits
beds, deletes and changes their children, adds beds and removes some.

The resources of the process (memory, tasks, descriptors) are measured while it is idle and the faults are off: before
and after the churn. Drift is measured while the faults are on, by comparing every bed's children with their desired
state.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.fault_proxy import FaultProxy, FaultRates
from bench.replica import ProcessUsage, Replica
from bench.sample_operator import BED, CHILD_KINDS, CONFIG_MAP, Bed, children, is_ready, new_bed
from konverge._internal.client.connect import connect
from konverge.client import Client
from konverge.crd import crd_manifest
from konverge.errors import KonvergeError, NotFoundError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_cluster._internal.testing.audit_requests import AuditedRequest, read_audit_log
from konverge_cluster.controlplane import RealCluster

__all__ = ["Soak", "SoakReport", "soak"]

GENTLE = FaultRates(drop_watches_seconds=2.0, expire_watches_seconds=10.0)
ROUGH = FaultRates(drop_watches_seconds=2.0, expire_watches_seconds=10.0, busy_every=100, cut_every=50)

_SETTLE_SECONDS = 120.0
_QUIET_SECONDS = 3.0
_PLANTS = ("fern", "rose", "iris", "mint", "sage", "dill", "lily", "moss")


@dataclass
class SoakReport:
    """The results of a soak.

    Attributes:
        before: The resources of the idle operator before the churn.
        warm: The same one minute into the churn, or at half time.
        after: The same of the idle operator after the churn.
        drift: The differences from the desired state at the end, one line each.
        settle_seconds: The time from the last change to the desired state.
        settled_last: The last differences before that.
        lags: The seconds from each edit of a bed to its Ready condition.
        failures: The lines of the operator's log that must never occur.
        actions: The number of actions on beds and children.
        faults: The number of faults that the proxy injected.
        counters: The counters of the operator.
        requests: The operator's requests, by verb.
        samples: The resident set in megabytes over time.
    """

    before: ProcessUsage | None = None
    warm: ProcessUsage | None = None
    after: ProcessUsage | None = None
    drift: list[str] = field(default_factory=list)
    settle_seconds: float = 0.0
    settled_last: list[str] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    counters: dict[str, float] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    samples: list[float] = field(default_factory=list)


class Disruptors:
    """A user of the garden who edits, deletes, changes, adds and removes objects at a steady rate.

    Args:
        client: A client without injected faults.
        namespace: The namespace of the beds.
        owners: The approximate number of beds.
        seed: The seed of the sequence of actions.
    """

    def __init__(self, client: Client, namespace: str, owners: int, seed: int = 1) -> None:
        self._client = client
        self._namespace = namespace
        self._random = random.Random(seed)
        self._next = owners
        self._owners = owners
        self.names = [f"bed-{number:04}" for number in range(owners)]
        self.plants = dict.fromkeys(self.names, "fern")
        self.edited: dict[tuple[str, int], float] = {}
        self.actions: Counter[str] = Counter()

    async def create_all(self) -> None:
        """Create the beds of the start."""
        for name in self.names:
            await self._client.create(new_bed(name, self._namespace))

    async def work(self, seconds: float, actions_per_second: float) -> None:
        """Perform actions at a rate for a number of seconds."""
        end = time.monotonic() + seconds
        doings = (self._edit, self._delete_child, self._deface_child, self._add, self._remove)
        while time.monotonic() < end:
            (doing,) = self._random.choices(doings, weights=(50, 20, 15, 8, 7))
            with suppress(NotFoundError):  # the operator has not created the child yet, or again
                await doing()
                self.actions[doing.__name__.strip("_").replace("_", " ")] += 1
            await asyncio.sleep(self._random.expovariate(actions_per_second))

    async def _edit(self) -> None:
        name, plant = self._random.choice(self.names), self._random.choice(_PLANTS)
        patch = {"spec": {"plant": plant}}
        edited_at = time.monotonic()
        bed = await self._client.patch(BED, self._key(name), patch, patch_type="merge")
        if self.plants[name] != plant:
            self.edited[name, bed["metadata"]["generation"]] = edited_at
        self.plants[name] = plant

    async def _delete_child(self) -> None:
        await self._client.delete(self._random.choice(CHILD_KINDS), self._key(self._random.choice(self.names)))

    async def _deface_child(self) -> None:
        patch = {"data": {"plant": "nettle"}}
        key = self._key(self._random.choice(self.names))
        await self._client.patch(CONFIG_MAP, key, patch, patch_type="merge")

    async def _add(self) -> None:
        if len(self.names) > 1.1 * self._owners:
            return
        name = f"bed-{self._next:04}"
        self._next += 1
        bed = await self._client.create(new_bed(name, self._namespace))
        self.edited[name, bed["metadata"]["generation"]] = time.monotonic()
        self.names.append(name)
        self.plants[name] = "fern"

    async def _remove(self) -> None:
        if len(self.names) < 0.9 * self._owners:
            return
        name = self._random.choice(self.names)
        await self._client.delete(BED, self._key(name))
        self.names.remove(name)
        del self.plants[name]

    def _key(self, name: str) -> ObjectKey:
        return ObjectKey(self._namespace, name)


class Soak:
    """One soak on a running control plane.

    Args:
        cluster: The control plane.
        client: The client of an administrator, without faults.
        namespace: The namespace of the beds; it exists.
        folder: The folder for the operator's log and kubeconfig.
        owners: The number of beds.
        faults: The injected faults.
        agent: The name of the operator, unique on the control plane.
        seed: The seed of the sequence of actions.
    """

    def __init__(
        self,
        cluster: RealCluster,
        client: Client,
        namespace: str,
        folder: Path,
        *,
        owners: int,
        faults: FaultRates,
        agent: str = "soaked",
        seed: int = 1,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._namespace = namespace
        self._folder = folder
        self._faults = faults
        self._agent = agent
        self._gardeners = Disruptors(client, namespace, owners, seed)
        self.report = SoakReport()

    async def run(self, seconds: float, *, actions_per_second: float = 3.0) -> SoakReport:
        """Churn for a number of seconds, wait until steady, compare."""
        report, start = self.report, self._cluster.audit_log.stat().st_size
        await install(self._client)
        await self._gardeners.create_all()
        async with FaultProxy(self._cluster.kubeconfig) as proxy:
            kubeconfig = proxy.write_kubeconfig(self._folder / "kubeconfig")
            log = self._folder / f"{self._agent}.log"
            async with Replica(kubeconfig, self._namespace, log, operator=self._agent) as replica, self._following():
                await self._wait_until_steady(replica)
                report.before = await self._wait_until_idle(replica)
                proxy.faults = self._faults
                sampling = asyncio.create_task(self._sample(replica, min(60.0, seconds / 2)))
                await self._gardeners.work(seconds, actions_per_second)
                changed_at = time.monotonic()
                report.settled_last = []
                report.drift = await self._wait_until_steady(replica)
                report.settle_seconds = time.monotonic() - changed_at
                sampling.cancel()
                await asyncio.gather(sampling, return_exceptions=True)
                proxy.faults = FaultRates()
                report.after = await self._wait_until_idle(replica)
                report.counters = await replica.metrics()
            report.failures = replica.failures()
            report.faults = proxy.done
        report.actions = self._gardeners.actions
        report.requests = Counter(
            describe_request(request)
            for request in read_audit_log(self._cluster.audit_log, start)
            if replica.is_agent(request.user_agent)
        )
        return report

    @asynccontextmanager
    async def _following(self) -> AsyncIterator[None]:
        """Record in the block the time from each edit to Ready."""
        page = await self._client.list_page(BED, namespace=self._namespace, limit=1)

        async def follow() -> None:
            async with self._client.watch(
                BED, namespace=self._namespace, resource_version=page.resource_version, timeout_seconds=7200
            ) as events:
                async for event in events:
                    metadata = event.object["metadata"]
                    if event.type == "MODIFIED" and is_ready(event.object):
                        edited_at = self._gardeners.edited.pop((metadata["name"], metadata["generation"]), None)
                        if edited_at is not None:
                            self.report.lags.append(time.monotonic() - edited_at)

        following = asyncio.create_task(follow())
        try:
            yield
        finally:
            if not following.done():
                following.cancel()
            with suppress(asyncio.CancelledError):
                await following

    async def _wait_until_steady(self, replica: Replica) -> list[str]:
        """Wait until nothing drifts, with a deadline; return the remaining drift."""
        end = time.monotonic() + _SETTLE_SECONDS
        while True:
            found = await self.drift()
            replica.check_alive()
            if not found or time.monotonic() > end:
                return found
            self.report.settled_last = found
            await asyncio.sleep(1.0)

    async def drift(self) -> list[str]:
        """Return the differences from the desired state."""
        beds = {bed["metadata"]["name"]: bed for bed in await self._list_objects(BED)}
        found = [f"{name}: there, but was removed" for name in beds.keys() - self._gardeners.plants.keys()]
        for gvk in CHILD_KINDS:
            held = {obj["metadata"]["name"]: obj for obj in await self._list_objects(gvk) if _is_a_childs(obj)}
            found += [f"{gvk.kind} {name}: its bed was removed" for name in held.keys() - beds.keys()]
            for name, plant in self._gardeners.plants.items():
                wanted = children(name, self._namespace, plant)[gvk]
                found += [f"{gvk.kind} {name}: {problem}" for problem in _differences(wanted, held.get(name))]
                uids = [owner["uid"] for owner in (held.get(name) or {}).get("metadata", {}).get("ownerReferences", ())]
                if name in held and name in beds and uids != [beds[name]["metadata"]["uid"]]:
                    found.append(f"{gvk.kind} {name}: belongs to {uids}")
        for name in self._gardeners.plants:
            if name not in beds:
                found.append(f"{name}: absent")
            elif not is_ready(beds[name]):
                found.append(f"{name}: not Ready for its generation: {beds[name].get('status')}")
        return found

    async def _list_objects(self, gvk: GroupVersionKind) -> Sequence[Mapping[str, Any]]:
        return (await self._client.list(gvk, namespace=self._namespace)).items

    async def _wait_until_idle(self, replica: Replica) -> ProcessUsage:
        """Wait until no reconcile has run for a while; return the resources of the process."""
        before, since = -1.0, time.monotonic()
        async with asyncio.timeout(_SETTLE_SECONDS):
            while time.monotonic() - since < _QUIET_SECONDS:
                await asyncio.sleep(0.5)
                metrics = await replica.metrics()
                passes = sum(metrics[name] for name in ("controller_runtime_reconcile_total", "konverge_tasks"))
                if passes != before:
                    before, since = passes, time.monotonic()
        return await replica.read_usage()

    async def _sample(self, replica: Replica, warm_seconds: float) -> None:
        begin = time.monotonic()
        while True:
            held = await replica.read_usage()
            self.report.samples.append(held.megabytes)
            if self.report.warm is None and time.monotonic() - begin >= warm_seconds:
                self.report.warm = held
            await asyncio.sleep(min(5.0, warm_seconds / 4))


async def install(client: Client) -> None:
    """Install the definition of the beds, and wait until it is served."""
    await client.apply(crd_manifest(Bed), field_manager="garden")
    async with asyncio.timeout(30):
        while True:
            with suppress(KonvergeError):
                await client.list(BED)
                return
            await asyncio.sleep(0.1)


def describe_request(request: AuditedRequest) -> str:
    """Return a request's verb, kind and, after a failure, status code."""
    parts = request.path.strip("/").split("/")
    if "namespaces" in parts:
        parts = parts[parts.index("namespaces") + 2 :]
        kind = "/".join([*parts[:1], *parts[2:]])
    else:
        kind = parts[-1] if request.verb in ("list", "watch") else "discovery"
    return f"{request.verb} {kind}" + ("" if request.code < 400 else f" ({request.code})")


def _is_a_childs(obj: Mapping[str, Any]) -> bool:
    return "bed" in (obj["metadata"].get("labels") or {})


def _differences(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Return the paths at which the found value lacks the desired one; additional fields belong to the server."""
    if isinstance(wanted, Mapping):
        if not isinstance(found, Mapping):
            return [f"{path or 'object'}: absent"]
        return [problem for name in wanted for problem in _differences(wanted[name], found.get(name), f"{path}.{name}")]
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return [f"{path}: expected {wanted}, found {found}"]
        pairs = enumerate(zip(wanted, found, strict=True))
        return [problem for place, (one, other) in pairs for problem in _differences(one, other, f"{path}[{place}]")]
    return [] if wanted == found else [f"{path}: expected {wanted!r}, found {found!r}"]


async def soak(
    minutes: float, owners: int, faults: FaultRates, actions_per_second: float, log: Path | None, seed: int
) -> SoakReport:
    """Run a soak on its own control plane."""
    with tempfile.TemporaryDirectory(prefix="konverge-soak-") as temporary:
        folder = log or Path(temporary)
        folder.mkdir(exist_ok=True)
        async with RealCluster() as cluster, connect(cluster.kubeconfig, user_agent="gardener", env={}) as client:
            namespace = "soak"
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            run = Soak(cluster, client, namespace, folder, owners=owners, faults=faults, seed=seed)
            return await run.run(60 * minutes, actions_per_second=actions_per_second)


def _print(report: SoakReport) -> bool:
    """Print the report; return True if it meets the goals."""
    assert report.before is not None
    assert report.after is not None
    print("done to the beds:", _format_counts(report.actions))
    print("done to the operator:", _format_counts(report.faults))
    print("requests (audit log):", _format_counts(report.requests))
    for name in (
        "controller_runtime_reconcile_total",
        "controller_runtime_reconcile_errors_total",
        "konverge_informer_lists_total",
        "konverge_informer_watches_total",
        "konverge_informer_stale_events_total",
        "konverge_breaker_opened_total",
    ):
        print(f"{name}: {report.counters.get(name, 0):.0f}")
    lags = sorted(report.lags)
    if lags:
        p50, p99 = lags[len(lags) // 2], lags[int(len(lags) * 0.99)]
        print(f"edit to Ready: {len(lags)} edits, median {p50:.2f} s, 99 % {p99:.2f} s, worst {lags[-1]:.2f} s")
    print(f"{'held':<12} {'MB':>7} {'tasks':>6} {'threads':>8} {'descriptors':>12} {'connections':>12}")
    for name, held in (("before", report.before), ("warm", report.warm), ("after", report.after)):
        if held is not None:
            print(
                f"{name:<12} {held.megabytes:>7.1f} {held.tasks:>6} {held.threads:>8} "
                f"{held.descriptors:>12} {held.connections:>12}"
            )
    every = max(1, len(report.samples) // 20)
    print("resident set over time (MB):", " ".join(f"{sample:.1f}" for sample in report.samples[::every]))
    print(f"settled {report.settle_seconds:.1f} s after the last change; drift: {len(report.drift)}")
    for line in report.settled_last[:3]:
        print(f"  settled last: {line}")
    for line in [*report.drift[:20], *report.failures[:20]]:
        print(f"  {line}")
    problems = {
        "drift": bool(report.drift),
        "tasks grow": report.after.tasks > report.before.tasks,
        "descriptors grow": report.after.descriptors > report.before.descriptors + 2,
        "memory grows": report.warm is not None and report.after.megabytes > 1.1 * report.warm.megabytes,
        "failures in the log": bool(report.failures),
    }
    found = [problem for problem, is_so in problems.items() if is_so]
    print("verdict:", "as it should be" if not found else ", ".join(found))
    return not found


def _format_counts(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="An operator on a failing connection.")
    parser.add_argument("--minutes", type=float, default=10.0, help="for how long (default: 10)")
    parser.add_argument("--owners", type=int, default=100, help="how many beds (default: 100)")
    parser.add_argument("--actions", type=float, default=3.0, help="changes a second (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="decides what is changed (default: 1)")
    parser.add_argument("--gentle", action="store_true", help="watch faults alone: requests and writes go through")
    parser.add_argument("--log", type=Path, help="a folder in which the operator's log stays")
    arguments = parser.parse_args()
    faults = GENTLE if arguments.gentle else ROUGH
    report = asyncio.run(
        soak(arguments.minutes, arguments.owners, faults, arguments.actions, arguments.log, arguments.seed)
    )
    raise SystemExit(0 if _print(report) else 1)


if __name__ == "__main__":
    main()
