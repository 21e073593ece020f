"""A thread that detects a blocked event loop, and reports the blocking line while it blocks.

A time limit ends an author's synchronous functions (`component.time_limit`). Nothing can end a coroutine that
loops without waiting, or a call into C that blocks. While one of them runs, no other task runs, and no task in the loop
could report it. Therefore a thread requests a heartbeat from the loop periodically. If none comes in time, it logs the
position of the loop's thread, and again after twice the time. A loop that is blocked forever thus causes only a few log
lines.

While the loop is blocked, no probe gets a response: the process is not live.
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

from konverge._internal.extras import source_folders
from konverge.clock import Clock

__all__ = ["BlockedLoopWatchdog", "describe_stack"]

_log = logging.getLogger("konverge.runtime")

_MAX_FRAMES = 12
# Locations of library code, which blocks on behalf of the author's line that called it: the standard library, the
# installed packages, and konverge.
_LIBRARY_PATHS = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    *source_folders(),
)
_PERIODS = 5  # measurements per limit: the limit is exceeded by at most a fifth of it


class BlockedLoopWatchdog:
    """Watches the event loop of the block that it surrounds.

    Args:
        limit: Time for which the loop may be blocked; more than zero.
        clock: Source of time; callable from any thread.
    """

    def __init__(self, limit: timedelta, *, clock: Clock) -> None:
        self._limit_seconds = limit.total_seconds()
        self._clock = clock
        self._closed = threading.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._watched = threading.get_ident()
        # A daemon thread: it does not keep the process alive after the main thread.
        self._thread = threading.Thread(target=self._watch, name="konverge blocked loop", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()  # the thread waits for nothing any more

    def _watch(self) -> None:
        period_seconds = self._limit_seconds / _PERIODS
        while not self._closed.wait(period_seconds):
            has_run = threading.Event()
            try:
                self._loop.call_soon_threadsafe(has_run.set)
            except RuntimeError:  # the loop is closed
                return
            self._await_heartbeat(has_run, period_seconds)

    def _await_heartbeat(self, has_run: threading.Event, period_seconds: float) -> None:
        began = self._clock.monotonic()
        report_seconds, is_reported = self._limit_seconds, False
        while not has_run.is_set() and not self._closed.wait(period_seconds):
            seconds = self._clock.monotonic() - began
            if seconds >= report_seconds and not has_run.is_set():
                _log.error(
                    "the event loop has been blocked for %.1f s, and no other task runs: %s. Move the blocking call "
                    "to a thread (asyncio.to_thread), or use await. The loop is at\n%s",
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
            return f"the loop's thread has ended{in_task}"
        own = [frame for frame in frames if not frame.filename.startswith(_LIBRARY_PATHS)]
        culprit = (own or frames)[-1]
        return f"{culprit.filename}:{culprit.lineno}, {culprit.name}{in_task}"


def describe_stack(thread: int) -> str:
    """Return the position of a thread: files, lines and functions, innermost last; no source text and no values."""
    frames = _list_frames(thread)[-_MAX_FRAMES:]
    return "\n".join(f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames) or "  (ended)"


def _list_frames(thread: int) -> list[traceback.FrameSummary]:
    frame = sys._current_frames().get(thread)  # the way that the standard library documents
    return [] if frame is None else list(traceback.extract_stack(frame))
