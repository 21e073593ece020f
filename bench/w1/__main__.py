"""Runs W1 and prints its table: ``python -m bench.w1``, with ``--parents 100`` for a quick look.

On a shared machine, ``--rounds 3`` measures floor and operator in turn and prints the median round by the ratio of
their times.
"""

from __future__ import annotations

import argparse
import asyncio
import compileall
import platform
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import bench
import konverge
from bench.w1.measurements import (
    NewOwnerMeasurement,
    ProcessMeasurement,
    measure_flood,
    measure_floor,
    measure_operator,
    measure_with_events,
)

_WIDTHS = (44, 16, 22, 12)
_GOALS = ("<= 1.1 x floor", "<= 7", "<= 2 x floor", "<= 70 MB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.w1", description="Runs W1 and prints its table.")
    parser.add_argument("--parents", type=int, default=1_000, help="number of parents (default: 1000)")
    parser.add_argument(
        "--flood", type=int, help="number of parents before the fresh one (default: 5 times the parents)"
    )
    parser.add_argument(
        "--rounds", type=int, default=1, help="number of measurements of floor and operator (default: 1)"
    )
    parser.add_argument("--profile", type=Path, help="file for a cProfile profile of the operator")
    arguments = parser.parse_args()
    flood = arguments.flood or 5 * arguments.parents
    # pip compiles what it installs; without bytecode, each measured start would include the compilation.
    for package in (bench, konverge):
        compileall.compile_dir(package.__path__[0], quiet=1)
    asyncio.run(_run(arguments.parents, flood, max(1, arguments.rounds), arguments.profile))


async def _run(count: int, flood: int, rounds: int, profile: Path | None) -> None:
    print(f"# {datetime.now(UTC):%Y-%m-%d %H:%M}, Python {platform.python_version()}, {platform.machine()}")
    print(f"# {count} parents of 5 children; the control plane is on the same machine")
    _print_row("what", "goal", "measured", "to floor")
    runs = [(await measure_floor(count), *await measure_operator(count, profile=profile)) for _ in range(rounds)]
    ratios = sorted((cold.seconds / floor.seconds, number) for number, (floor, cold, _, _) in enumerate(runs))
    floor, cold, touched, restarted = runs[ratios[(rounds - 1) // 2][1]]
    if rounds > 1:
        print(f"# {rounds} rounds; to all Ready, to the floor: {', '.join(f'{ratio:.2f}' for ratio, _ in ratios)}")
    _print_cold("floor", floor, floor, count)
    _print_cold("konverge", cold, floor, count, _GOALS)
    _print_quiet("touched without effect", touched, count)
    _print_quiet("started again", restarted, count)
    _print_cold("with events", await measure_with_events(count), floor, count)
    _print_fresh(await measure_flood(flood))


def _print_cold(
    subject: str,
    measurement: ProcessMeasurement,
    floor: ProcessMeasurement,
    count: int,
    goals: tuple[str, str, str, str] = ("", "", "", ""),
) -> None:
    requests = sum(number for verb, number in measurement.requests.items() if verb not in ("list", "watch"))
    ratio = f"{measurement.cpu_seconds / floor.cpu_seconds:.2f}"
    _print_row(
        f"{subject}: to all Ready",
        goals[0],
        f"{measurement.seconds:.1f} s",
        f"{measurement.seconds / floor.seconds:.2f}",
    )
    _print_row(f"{subject}: requests a parent", goals[1], f"{requests / count:.2f}", "")
    _print_verbs(measurement.requests, count)
    _print_row(f"{subject}: CPU", goals[2], f"{measurement.cpu_seconds:.1f} s", ratio)
    _print_row(f"{subject}: peak memory", goals[3], f"{measurement.peak_megabytes:.0f} MB", "")


def _print_quiet(what: str, measurement: ProcessMeasurement, count: int) -> None:
    _print_row(f"{what}: requests but lists and watches", "0", str(measurement.needless.total()), "")
    _print_verbs(measurement.requests, count)
    _print_row(f"{what}: until quiet", "", f"{measurement.seconds:.1f} s", "")
    _print_row(
        f"{what}: CPU, peak memory", "", f"{measurement.cpu_seconds:.2f} s, {measurement.peak_megabytes:.0f} MB", ""
    )


def _print_fresh(measurement: NewOwnerMeasurement) -> None:
    what = f"fresh, behind {measurement.waiting} of {measurement.flood}"
    _print_row(f"{what}: first write", "<= 1 s", f"{measurement.first_write_seconds:.2f} s", "")
    _print_row(f"{what}: Ready", "<= 1 s", f"{measurement.ready_seconds:.2f} s", "")


def _print_verbs(requests: Counter[str], count: int) -> None:
    for verb, number in requests.most_common():
        rate = f"{number}" if number < count / 2 else f"{number / count:.2f} a parent"
        _print_row(f"    {verb}", "", rate, "")


def _print_row(*cells: str) -> None:
    print(" ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip(), flush=True)


if __name__ == "__main__":
    main()
