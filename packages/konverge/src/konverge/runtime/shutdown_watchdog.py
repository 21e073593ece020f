"""The end of a process that does not end by itself: passes that swallow their cancellation, a loop that is blocked.

Whoever stopped the process waits, and the next replica with it. So a thread of its own counts down, and ends the
process with a line that names what held it up.
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
"""With what a process ends that did not end by itself in time."""

_MAX_TASKS = 20


class ShutdownWatchdog:
    """Ends the process after a while, unless it is disarmed.

    Args:
        exit_process: What ends it; gets the exit code.
    """

    def __init__(self, exit_process: Callable[[int], object] = os._exit) -> None:
        self._exit_process = exit_process
        self._main = threading.get_ident()
        self._timer: threading.Timer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def arm(self, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        """End the process in so many seconds; an earlier countdown is off."""
        self.disarm()
        self._loop = loop
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True
        self._timer.start()

    def disarm(self) -> None:
        """Do not end the process after all."""
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
        # Where, not with what: no values (invariant 7).
        place = "".join(traceback.format_stack(frame, limit=8)) if frame is not None else "nowhere"
        try:
            names = sorted(task.get_name() for task in asyncio.all_tasks(self._loop) if not task.done())
        except RuntimeError:  # the loop goes on making tasks while they are counted
            names = ["too many to tell"]
        _log.critical(
            "the process does not end by itself and is ended (code %d). Tasks: %s. The main thread is at\n%s",
            HUNG_SHUTDOWN_EXIT_CODE,
            ", ".join(names[:_MAX_TASKS]) or "none",
            place,
        )
