"""The start of a measured program: it prints that its imports are done, and waits for a signal."""

from __future__ import annotations

import sys

__all__ = ["READY", "wait_for_go"]

READY = "ready"


def wait_for_go() -> None:
    """Print the ready line, and wait for a line on standard input."""
    print(READY, flush=True)
    sys.stdin.readline()
