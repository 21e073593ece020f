"""The cost of unrelated objects for an operator: ``python -m bench.noise --objects 20000 --per-second 200``.

An operator with a hundred beds runs while ConfigMaps without an owner are created and then changed all the time. It
watches ConfigMaps, since its beds have some. The memory for the unrelated ones and the CPU time of their events should
not grow with their number.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import tempfile
import time
from pathlib import Path

from bench.failover import FailoverBench
from bench.replica import Replica
from bench.sample_operator import CONFIG_MAP
from bench.soak import install
from konverge._internal.client.connect import connect
from konverge.client import Client
from konverge.kube import ObjectKey
from konverge_cluster.controlplane import RealCluster

_BEDS = 100
_AT_ONCE = 16
_TICKS = os.sysconf("SC_CLK_TCK")


async def measure(objects: int, per_second: float, seconds: float) -> None:
    """Measure RSS and CPU of the operator without noise, during the creations, and during the changes."""
    with tempfile.TemporaryDirectory(prefix="konverge-noise-") as folder:
        async with RealCluster() as cluster, connect(cluster.kubeconfig, user_agent="noise", env={}) as client:
            await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "noise"}})
            await install(client)
            garden = FailoverBench(cluster, client, "noise", Path(folder))
            names = [f"bed-{number:03}" for number in range(_BEDS)]
            async with Replica(cluster.kubeconfig, "noise", Path(folder) / "log") as replica:
                await garden.create_owners(names)
                await garden.wait_until_ready(names)
                print(f"{'':<34} {'MB':>7} {'CPU %':>7} {'held':>7} {'passes':>7} {'changes/s':>10}")
                await _phase(f"{_BEDS} beds, quiet", replica, asyncio.sleep(10))
                await _phase(f"{objects} foreign ConfigMaps created", replica, _create(client, objects))
                await _phase("quiet again", replica, asyncio.sleep(10))
                await _phase("noise", replica, _change(client, objects, per_second, seconds / 2))
                await _phase("noise, second half", replica, _change(client, objects, per_second, seconds / 2))
                await _phase("quiet at the end", replica, asyncio.sleep(10))


async def _phase(name: str, replica: Replica, doing: object) -> None:
    assert asyncio.iscoroutine(doing)
    begin, cpu, before = time.monotonic(), _cpu_seconds(replica), await replica.metrics()
    done = await doing
    seconds = time.monotonic() - begin
    after, held = await replica.metrics(), await replica.read_usage()
    passes = after["controller_runtime_reconcile_total"] - before["controller_runtime_reconcile_total"]
    print(
        f"{name:<34} {held.megabytes:>7.1f} {100 * (_cpu_seconds(replica) - cpu) / seconds:>7.1f} "
        f"{after['konverge_informer_objects']:>7.0f} {passes:>7.0f} {(done or 0) / seconds:>10.0f}",
        flush=True,
    )


async def _create(client: Client, count: int) -> int:
    waiting = iter(range(count))

    async def work() -> None:
        for number in waiting:
            metadata = {"name": f"noise-{number:05}", "namespace": "noise"}
            data = {"text": "x" * 1000}
            await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    async with asyncio.TaskGroup() as workers:
        for _ in range(_AT_ONCE):
            workers.create_task(work())
    return count


async def _change(client: Client, objects: int, per_second: float, seconds: float) -> int:
    """Change one object after the other, at the given rate as far as the server can follow."""
    begin, done, numbers, run = time.monotonic(), 0, itertools.count(), time.monotonic_ns()

    async def work() -> None:
        nonlocal done
        while (due := begin + (number := next(numbers)) / per_second) < begin + seconds:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            key = ObjectKey("noise", f"noise-{number * 7919 % objects:05}")
            await client.patch(CONFIG_MAP, key, {"data": {"number": f"{run}-{number}"}}, patch_type="merge")
            done += 1

    async with asyncio.TaskGroup() as workers:
        for _ in range(_AT_ONCE):
            workers.create_task(work())
    return done


def _cpu_seconds(replica: Replica) -> float:
    # Fields 14 and 15; the second field, the name, can contain spaces.
    fields = Path(f"/proc/{replica.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.noise", description="What others' objects cost.")
    parser.add_argument("--objects", type=int, default=20_000, help="foreign ConfigMaps (default: 20000)")
    parser.add_argument("--per-second", type=float, default=200.0, help="changes a second (default: 200)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they change (default: 60)")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.objects, arguments.per_second, arguments.seconds))


if __name__ == "__main__":
    main()
