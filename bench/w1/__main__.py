"""Runs W1 and prints its table: ``python -m bench.w1``, with ``--parents 100`` for a quick look.

Where others use the machine too, ``--rounds 3`` takes floor and operator in turn and shows the median round, by the
ratio of their times.
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
    ColdMeasurement,
    NewOwnerMeasurement,
    QuietMeasurement,
    measure_flood,
    measure_floor,
    measure_operator,
    measure_with_events,
)

_WIDTHS = (44, 16, 22, 12)
_GOALS = ("<= 1.1 x floor", "<= 7", "<= 2 x floor", "<= 70 MB")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.w1", description="Runs W1 and prints its table.")
    parser.add_argument("--parents", type=int, default=1_000, help="how many (default: 1000)")
    parser.add_argument("--flood", type=int, help="behind how many one fresh parent comes (default: 5 times as many)")
    parser.add_argument("--rounds", type=int, default=1, help="how often floor and operator are measured (default: 1)")
    parser.add_argument("--profile", type=Path, help="let cProfile write there what the operator does")
    arguments = parser.parse_args()
    flood = arguments.flood or 5 * arguments.parents
    # As pip leaves what it installs; where Python may not write bytecode, each start would be measured compiling.
    for package in (bench, konverge):
        compileall.compile_dir(package.__path__[0], quiet=1)
    asyncio.run(_run(arguments.parents, flood, max(1, arguments.rounds), arguments.profile))


async def _run(count: int, flood: int, rounds: int, profile: Path | None) -> None:
    print(f"# {datetime.now(UTC):%Y-%m-%d %H:%M}, Python {platform.python_version()}, {platform.machine()}")
    print(f"# {count} parents of 5 children; the control plane is on the same machine")
    _row("what", "goal", "measured", "to floor")
    found = [(await measure_floor(count), *await measure_operator(count, profile=profile)) for _ in range(rounds)]
    ratios = sorted((cold.seconds / floor.seconds, place) for place, (floor, cold, _, _) in enumerate(found))
    floor, cold, touched, restarted = found[ratios[(rounds - 1) // 2][1]]
    if rounds > 1:
        print(f"# {rounds} rounds; to all Ready, to the floor: {', '.join(f'{ratio:.2f}' for ratio, _ in ratios)}")
    _cold("floor", floor, floor, count)
    _cold("konverge", cold, floor, count, _GOALS)
    _quiet("touched without effect", touched, count)
    _quiet("started again", restarted, count)
    _cold("with events", await measure_with_events(count), floor, count)
    _fresh(await measure_flood(flood))


def _cold(
    who: str,
    found: ColdMeasurement,
    floor: ColdMeasurement,
    count: int,
    goals: tuple[str, str, str, str] = ("", "", "", ""),
) -> None:
    requests = sum(number for verb, number in found.requests.items() if verb not in ("list", "watch"))
    ratio = f"{found.cpu_seconds / floor.cpu_seconds:.2f}"
    _row(f"{who}: to all Ready", goals[0], f"{found.seconds:.1f} s", f"{found.seconds / floor.seconds:.2f}")
    _row(f"{who}: requests a parent", goals[1], f"{requests / count:.2f}", "")
    _verbs(found.requests, count)
    _row(f"{who}: CPU", goals[2], f"{found.cpu_seconds:.1f} s", ratio)
    _row(f"{who}: peak memory", goals[3], f"{found.peak_megabytes:.0f} MB", "")


def _quiet(what: str, found: QuietMeasurement, count: int) -> None:
    _row(f"{what}: requests but lists and watches", "0", str(found.needless.total()), "")
    _verbs(found.requests, count)
    _row(f"{what}: until quiet", "", f"{found.seconds:.1f} s", "")
    _row(f"{what}: CPU, peak memory", "", f"{found.cpu_seconds:.2f} s, {found.peak_megabytes:.0f} MB", "")


def _fresh(found: NewOwnerMeasurement) -> None:
    what = f"fresh, behind {found.waiting} of {found.flood}"
    _row(f"{what}: first write", "<= 1 s", f"{found.first_write_seconds:.2f} s", "")
    _row(f"{what}: Ready", "<= 1 s", f"{found.ready_seconds:.2f} s", "")


def _verbs(requests: Counter[str], count: int) -> None:
    for verb, number in requests.most_common():
        shown = f"{number}" if number < count / 2 else f"{number / count:.2f} a parent"
        _row(f"    {verb}", "", shown, "")


def _row(*cells: str) -> None:
    print(" ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip(), flush=True)


if __name__ == "__main__":
    main()
