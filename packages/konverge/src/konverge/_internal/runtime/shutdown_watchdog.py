"""The forced end of a process that hangs at shutdown: reconciles ignore their cancellation, or the loop is blocked.

The client that stopped the process waits, and so does the next replica. Therefore a separate thread counts down, and
ends the process with a log line that names the cause.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable

__all__ = ["HUNG_SHUTDOWN_EXIT_CODE", "ShutdownWatchdog"]

_log = logging.getLogger("konverge.runtime")

HUNG_SHUTDOWN_EXIT_CODE = 71
"""Exit code of a process that did not end by itself in time."""

_MAX_TASKS = 20


class ShutdownWatchdog:
    """Ends the process after a delay, unless it is disarmed.

    Args:
        exit_process: Ends the process; receives the exit code.
    """

    def __init__(self, exit_process: Callable[[int], object] = os._exit) -> None:
        self._exit_process = exit_process
        self._main = threading.get_ident()
        self._timer: threading.Timer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def arm(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        """End the process after this many seconds; this replaces an earlier countdown."""
        self.disarm()
        self._loop = loop
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def disarm(self) -> None:
        """Cancel the countdown, so that the process is not ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        try:
            self._log_reason()
        finally:
            self._exit_process(HUNG_SHUTDOWN_EXIT_CODE)

    def _log_reason(self) -> None:
        assert self._loop is not None
        frame = sys._current_frames().get(self._main)
        # Only positions, no values (invariant 7).
        position = "".join(traceback.format_stack(frame, limit=8)) if frame is not None else "  (ended)"
        try:
            names = sorted(task.get_name() for task in asyncio.all_tasks(self._loop) if not task.done())
        except RuntimeError:  # the loop creates tasks while they are listed
            names = ["too many to list"]
        _log.critical(
            "the process did not end in time: ending it with exit code %d. Tasks: %s. The main thread is at\n%s",
            HUNG_SHUTDOWN_EXIT_CODE,
            ", ".join(names[:_MAX_TASKS]) or "none",
            position,
        )
