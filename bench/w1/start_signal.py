"""How a measured program is started: it says that it is imported, and waits until it is told to go."""

from __future__ import annotations

import sys

__all__ = ["READY", "wait_for_go"]

READY = "ready"


def wait_for_go() -> None:
    """Say so, and wait for a line."""
    print(READY, flush=True)
    sys.stdin.readline()
