"""A box and the same operator in Python, over 1,000 objects on a real control plane, to all Ready.

``python -m bench.box_against_python``. Both create the five objects of W1 (`bench.w1`) for each parent, in two groups;
the second group waits for the first. Each round measures both, each on its own control plane, in alternating order. The
result is the ratio within a round, since the machine can have other load.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
from pathlib import Path

from bench import box_program
from bench.w1 import program
from bench.w1.bench_cluster import BenchCluster
from bench.w1.box import BOX
from bench.w1.measurements import ProcessMeasurement, measure_until_ready
from konverge.crd import crd_manifest
from konverge_box._internal.file import load_box
from konverge_box._internal.runtime import build_box_operator

_GOAL = 1.2
_NAMESPACE = "w1"
_LOADER = "w1-loader"


async def _measure_operator(module: str, user_agent: str, count: int, *files: Path) -> ProcessMeasurement:
    async with BenchCluster() as cluster:
        # Both use the definition of the box: its status has fields that the operator in Python leaves empty.
        await cluster.client.apply(
            crd_manifest(build_box_operator(load_box(BOX)).defined_resources[0]), field_manager=_LOADER
        )
        await cluster.load(count, _NAMESPACE)
        return await measure_until_ready(cluster, count, module, user_agent, *map(str, files))


async def _run(count: int, rounds: int) -> None:
    print(f"# {count} objects of 5 resources, {rounds} rounds, load {os.getloadavg()[0]:.1f}")
    measurements: list[tuple[ProcessMeasurement, ProcessMeasurement]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "box.yaml"
        file.write_text(BOX)
        for number in range(rounds):
            if number % 2:
                python = await _measure_operator("bench.w1.program", program.USER_AGENT, count)
                box = await _measure_operator("bench.box_program", box_program.USER_AGENT, count, file)
            else:
                box = await _measure_operator("bench.box_program", box_program.USER_AGENT, count, file)
                python = await _measure_operator("bench.w1.program", program.USER_AGENT, count)
            measurements.append((box, python))
            for name, run in (("box", box), ("Python", python)):
                print(
                    f"{name:<8}to all Ready {run.seconds:6.1f} s   CPU {run.cpu_seconds:5.1f} s   "
                    f"{run.peak_megabytes:4.0f} MB   {run.requests.total() / count:.2f} requests an object: "
                    f"{dict(run.requests.most_common(4))}",
                    flush=True,
                )
    ratios = sorted(box.seconds / python.seconds for box, python in measurements)
    cpu = sorted(box.cpu_seconds / python.cpu_seconds for box, python in measurements)
    print(f"box to Python: {statistics.median(ratios):.2f} (goal: <= {_GOAL}; rounds: {_format_ratios(ratios)})")
    print(f"box to Python, CPU: {statistics.median(cpu):.2f} (rounds: {_format_ratios(cpu)})")


def _format_ratios(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.box_against_python", description="A box and Python.")
    parser.add_argument("--objects", type=int, default=1_000, help="how many (default: 1000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often both are measured (default: 3)")
    arguments = parser.parse_args()
    asyncio.run(_run(arguments.objects, arguments.rounds))


if __name__ == "__main__":
    main()
