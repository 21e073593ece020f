"""A thread that notices when the event loop is blocked, and names the line that blocks it while it does.

A time limit ends an author's plain functions (`konverge.component.time_limit`). Nothing can end a coroutine that loops
without waiting, or a call into C that blocks: while one of them runs, nothing else does, and nothing in the loop could
report it. So a thread asks the loop for a sign of life again and again. When none comes for too long it logs where the
loop's thread is, and again after twice the time, so that a loop that is blocked for ever is a few lines in the log.

Until the loop runs again no probe is answered: the process is not live.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import sysconfig
import threading
import traceback
from datetime import timedelta
from typing import Self

from konverge.clock import Clock
from konverge.extras import source_folders

__all__ = ["BlockedLoopWatchdog", "describe_stack"]

_log = logging.getLogger("konverge.runtime")

_MAX_FRAMES = 12
# Where a line is that blocks on behalf of the author's line that called it: the standard library and what is installed
# beside it, and konverge.
_LIBRARY_PATHS = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    *source_folders(),
)
_PERIODS = 5  # in which the limit is measured: it is exceeded by a fifth of it at most


class BlockedLoopWatchdog:
    """Watches the event loop of the block that it surrounds.

    Args:
        limit: For how long the loop may be blocked; more than zero.
        clock: The time; one that any thread may read.
    """

    def __init__(self, limit: timedelta, *, clock: Clock) -> None:
        self._limit_seconds = limit.total_seconds()
        self._clock = clock
        self._closed = threading.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        # A daemon: whatever becomes of the main thread, this one does not keep the process alive.
        self._thread = threading.Thread(target=self._watch, name="konverge blocked loop", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()  # it waits for nothing any more

    def _watch(self) -> None:
        period_seconds = self._limit_seconds / _PERIODS
        while not self._closed.wait(period_seconds):
            has_run = threading.Event()
            try:
                self._loop.call_soon_threadsafe(has_run.set)
            except RuntimeError:  # it is closed
                return
            self._await_heartbeat(has_run, period_seconds)

    def _await_heartbeat(self, has_run: threading.Event, period_seconds: float) -> None:
        began = self._clock.monotonic()
        report_seconds, is_reported = self._limit_seconds, False
        while not has_run.is_set() and not self._closed.wait(period_seconds):
            seconds = self._clock.monotonic() - began
            if seconds >= report_seconds and not has_run.is_set():
                _log.error(
                    "the event loop has been blocked for %.1f s, and nothing else runs: %s. Move what blocks it to a "
                    "thread (asyncio.to_thread), or let it wait with await. The loop is at\n%s",
                    seconds,
                    self._describe_culprit(),
                    describe_stack(self._watched),
                )
                report_seconds, is_reported = 2 * seconds, True
        if is_reported:
            _log.warning("the event loop runs again after %.1f s", self._clock.monotonic() - began)

    def _describe_culprit(self) -> str:
        task = asyncio.current_task(self._loop)
        in_task = "" if task is None else f" in the task {task.get_name()!r}"
        frames = _list_frames(self._watched)
        if not frames:
            return f"its thread has ended{in_task}"
        own = [each for each in frames if not each.filename.startswith(_LIBRARY_PATHS)]
        culprit = (own or frames)[-1]
        return f"{culprit.filename}:{culprit.lineno}, {culprit.name}{in_task}"


def describe_stack(thread: int) -> str:
    """Where a thread is: files, lines and functions, innermost last; no source text and no values."""
    frames = _list_frames(thread)[-_MAX_FRAMES:]
    return "\n".join(f"  {each.filename}:{each.lineno} in {each.name}" for each in frames) or "  (it has ended)"


def _list_frames(thread: int) -> list[traceback.FrameSummary]:
    frame = sys._current_frames().get(thread)  # the way that the standard library documents
    return [] if frame is None else list(traceback.extract_stack(frame))
