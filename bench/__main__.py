"""Runs every measurement and prints a table: what was measured, the floor, and the ratio of the two."""

from __future__ import annotations

import platform
from datetime import UTC, datetime

from bench import settled_pass

if __name__ == "__main__":
    print(f"# {datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}, {platform.machine()}")
    for line in settled_pass.measure():
        print(line)
