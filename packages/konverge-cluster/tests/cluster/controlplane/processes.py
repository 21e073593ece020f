"""Looking at processes that are not our children, and at the folders they leave."""

from __future__ import annotations

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """Tell whether the process exists and is more than an unreaped entry."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
