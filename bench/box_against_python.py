"""A box and the same operator in Python, over 1,000 objects on a real control plane, to all Ready.

``python -m bench.box_against_python``. Both make the five objects of W1 (`bench.w1`) for each parent, in two groups of
which the second waits for the first. Each round takes them one after the other, each on a control plane of its own;
which is first changes from round to round. What counts is the ratio of the rounds: the machine has other work, too.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bench import box_program
from bench.w1 import program
from bench.w1.bench_cluster import BenchCluster, count_by_verb
from bench.w1.box import BOX
from bench.w1.measured_process import MeasuredProcess
from konverge.crd import crd_manifest
from konverge_box.file import load_box
from konverge_box.runtime import build_box_operator

_GOAL = 1.2
_NAMESPACE = "w1"
_LOADER = "w1-loader"


@dataclass(frozen=True)
class _Run:
    seconds: float
    cpu_seconds: float
    megabytes: float
    requests: Counter[str]


async def _measure_operator(module: str, user_agent: str, count: int, *files: Path) -> _Run:
    async with BenchCluster() as stage:
        # The box's definition for both: its status has fields that the other one leaves empty.
        await stage.client.apply(
            crd_manifest(build_box_operator(load_box(BOX)).defined_resources[0]), field_manager=_LOADER
        )
        await stage.load(count, _NAMESPACE)
        start = stage.position
        async with (
            stage.watching(_NAMESPACE) as readiness,
            MeasuredProcess(module, stage.kubeconfig, *map(str, files)) as subject,
        ):
            begin = subject.go()
            end = await subject.wait_for(readiness.wait_for_all_ready(count))
            await subject.wait_until_quiet()
            cpu_seconds, megabytes = subject.cpu_seconds, subject.peak_megabytes
        requests = count_by_verb(stage.requests(user_agent, start))
    return _Run(end - begin, cpu_seconds, megabytes, requests)


async def _run(count: int, rounds: int) -> None:
    print(f"# {count} objects of 5 resources, {rounds} rounds, load {os.getloadavg()[0]:.1f}")
    found: list[tuple[_Run, _Run]] = []
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
            found.append((box, python))
            for name, run in (("box", box), ("Python", python)):
                print(
                    f"{name:<8}to all Ready {run.seconds:6.1f} s   CPU {run.cpu_seconds:5.1f} s   "
                    f"{run.megabytes:4.0f} MB   {run.requests.total() / count:.2f} requests an object: "
                    f"{dict(run.requests.most_common(4))}",
                    flush=True,
                )
    ratios = sorted(box.seconds / python.seconds for box, python in found)
    cpu = sorted(box.cpu_seconds / python.cpu_seconds for box, python in found)
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
