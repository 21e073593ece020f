"""A measured program in its own process: started, triggered by a signal, measured from outside, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from bench.w1.start_signal import READY

__all__ = ["MeasuredProcess"]

T = TypeVar("T")

_TICKS = os.sysconf("SC_CLK_TCK")
_QUIET_SECONDS = 1.5
_SAMPLE_SECONDS = 0.1
# A tick is 10 ms: a quiet process can use one for a bookmark.
_QUIET_TICKS = 2


class MeasuredProcess:
    """The process of one program, as an async context manager; the block's exit ends the process.

    Args:
        module: The module of the program.
        arguments: The arguments of the program.
        profile: The output file for cProfile; None for no profile.
    """

    def __init__(self, module: str, *arguments: str, profile: Path | None = None) -> None:
        profiled = [] if profile is None else ["-m", "cProfile", "-o", str(profile)]
        self._command = [sys.executable, *profiled, "-m", module, *arguments]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        pipe = asyncio.subprocess.PIPE
        self._process = process = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe)
        assert process.stdout is not None
        printed = (await process.stdout.readline()).decode().strip()
        if printed != READY:
            raise RuntimeError(f"{self._command} did not start; its first line was {printed!r}")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._get_process()
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(30):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    def go(self) -> float:
        """Send the start signal; return its time."""
        process = self._get_process()
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        return time.monotonic()

    @property
    def cpu_seconds(self) -> float:
        """The CPU time so far, in user and kernel mode."""
        return self._ticks() / _TICKS

    @property
    def peak_megabytes(self) -> float:
        """The largest resident set so far in megabytes."""
        status = Path(f"/proc/{self._get_process().pid}/status").read_text()
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(kilobytes) / 1000

    @property
    def megabytes(self) -> float:
        """The current resident set in megabytes."""
        status = Path(f"/proc/{self._get_process().pid}/status").read_text()
        kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(kilobytes) / 1000

    async def wait_for(self, awaited: Coroutine[Any, Any, T]) -> T:
        """Wait for a result of the program.

        Raises:
            RuntimeError: The program has ended instead.
        """
        process = self._get_process()
        waiting, ended = asyncio.create_task(awaited), asyncio.create_task(process.wait())
        try:
            await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise RuntimeError(f"{self._command} ended with exit code {process.returncode}")
            return await waiting
        finally:
            for task in (waiting, ended):
                task.cancel()
            await asyncio.gather(waiting, ended, return_exceptions=True)

    async def wait_until_quiet(self, timeout_seconds: float = 600.0) -> float:
        """Wait until the process is idle; return the time since which it is."""
        async with asyncio.timeout(timeout_seconds):
            since, ticks = time.monotonic(), self._ticks()
            while time.monotonic() - since < _QUIET_SECONDS:
                await asyncio.sleep(_SAMPLE_SECONDS)
                if (now := self._ticks()) - ticks > _QUIET_TICKS:
                    since, ticks = time.monotonic(), now
            return since

    def _ticks(self) -> int:
        # Fields 14 and 15; the second field, the name, can contain spaces.
        fields = Path(f"/proc/{self._get_process().pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def _get_process(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "only within the block"
        return self._process
