"""Checks of processes that are not children of the test, and of the folders that they leave."""

from __future__ import annotations

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return True if the process exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
