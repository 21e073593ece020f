"""Progress of ``konverge resolve`` on a terminal: one line that is replaced, and one line for each retry."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TextIO

from konverge._internal.message_text import to_printable
from konverge._internal.runtime.background import background_task
from konverge.clock import Clock

__all__ = ["CLEAR_LINE", "ProgressDisplay", "is_terminal"]

CLEAR_LINE = "\r\x1b[K"
"""Moves the cursor to the start of its line and clears the line."""

_FIRST_SECONDS = 0.5
"""Commands that end earlier show nothing."""
_INTERVAL_SECONDS = 0.2
_MAX_REASON = 1000
_MIN_WIDTH = 20
_UNITS = ("B", "kB", "MB", "GB")


def is_terminal(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal on which a line can be replaced."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class ProgressDisplay:
    """Display of the progress of all resolutions of a command (`fetch_progress.ProgressObserver`).

    Args:
        stream: The terminal.
        clock: The clock.
        get_width: Returns the width of the terminal in columns.
    """

    def __init__(
        self, stream: TextIO, clock: Clock, get_width: Callable[[], int] = lambda: shutil.get_terminal_size().columns
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._get_width = get_width
        self._start = clock.monotonic()
        self._phase = ""
        self._bytes = 0
        self._first_byte: float | None = None
        self._has_line = False

    def on_phase(self, phase: str, host: str) -> None:
        """Record the phase for the next update of the line."""
        self._phase = f"{phase} {host}"

    def on_bytes(self, count: int) -> None:
        """Count received bytes."""
        if self._first_byte is None:
            self._first_byte = self._clock.monotonic()
        self._bytes += count

    def on_retry(self, reason: str, seconds: float) -> None:
        """Print why and when a call is repeated; the line stays."""
        self._clear()
        self._write(f"konverge: {to_printable(reason, _MAX_REASON)}; retry in {seconds:.1f} s\n")

    @asynccontextmanager
    async def updates(self) -> AsyncIterator[None]:
        """Update the line during the block, and remove it afterwards."""
        try:
            async with background_task(self._update_periodically(), name="progress"):
                yield
        finally:
            self._clear()

    async def _update_periodically(self) -> None:
        await self._clock.sleep(_FIRST_SECONDS)
        while True:
            self._draw()
            await self._clock.sleep(_INTERVAL_SECONDS)

    def _draw(self) -> None:
        if not self._phase:
            return
        now = self._clock.monotonic()
        parts = [f"{now - self._start:.0f} s"]
        if self._first_byte is not None:
            seconds = max(now - self._first_byte, _INTERVAL_SECONDS)
            parts += [_format_size(self._bytes), f"{_format_size(self._bytes / seconds)}/s"]
        width = max(self._get_width() - 1, _MIN_WIDTH)
        text = f"{self._phase} ({', '.join(parts)})"
        self._write(f"{CLEAR_LINE}{to_printable(text, width)[:width]}")
        self._has_line = True

    def _clear(self) -> None:
        if self._has_line:
            self._write(CLEAR_LINE)
            self._has_line = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _format_size(count: float) -> str:
    for unit in _UNITS[:-1]:
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} {_UNITS[-1]}"
