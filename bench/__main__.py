"""Runs measurements and prints a line for each: the subject, its peers or its floor, and the goal.

``python -m bench`` runs the measurements without a control plane; ``python -m bench cold_sync`` runs one. Measurements
on a real control plane are separate programs: ``python -m bench.w1``, ``python -m bench.soak``, ``python -m
bench.failover``, ``python -m bench.box_against_python``, ``python -m bench.box_footprint``.
"""

from __future__ import annotations

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import import_module

MEASUREMENTS = (
    "component_plan",
    "steady_reconcile",
    "queue_operations",
    "watch_events",
    "cached_pods",
    "cold_sync",
    "resolution",
    "resolution_git",
    "resolution_hostile",
    "resolution_http",
    "resolution_oci",
    "resolution_requests",
    "box_reconcile",
    "box_lint",
)


def _main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(MEASUREMENTS))
    if unknown:
        sys.exit(f"no such measurement: {', '.join(unknown)}; expected some of {', '.join(MEASUREMENTS)}")
    load = os.getloadavg()[0]
    print(
        f"# {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load {load:.1f}"
    )
    for name in names or MEASUREMENTS:
        for line in import_module(f"bench.{name}").measure():
            print(line, flush=True)


if __name__ == "__main__":
    _main(sys.argv[1:])
