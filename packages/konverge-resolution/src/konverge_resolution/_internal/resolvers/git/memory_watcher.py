"""Memory of git: the sum of all running processes, not only of each one.

The limit of one process does not limit many. A few concurrent references to a hostile server could use up the memory of
the Pod. The kernel could then kill the resolver's own process.
"""

from __future__ import annotations

import resource
from pathlib import Path

from konverge.clock import SystemClock
from konverge_resolution._internal.usage_limit import SharedUsage

__all__ = ["MemoryWatcher", "measure_memory"]

_POLL_SECONDS = 0.25
_PROCESSES = Path("/proc")


class MemoryWatcher:
    """Watcher of the memory of several programs; a resolver has one for all its programs."""

    def __init__(self) -> None:
        self._clock = SystemClock()  # programs grow in real time, even with a simulated clock
        self._usage: SharedUsage[int] = SharedUsage()

    async def wait_until_exceeded(self, process: int, *, max_bytes: int) -> None:
        """Return when all programs together exceed the limit and this one is the largest; otherwise never.

        Args:
            process: The process id; its child processes are included.
            max_bytes: Limit for all programs together, in bytes.
        """
        try:
            while True:
                await self._clock.sleep(_POLL_SECONDS)
                if self._usage.record_and_check(process, measure_memory(process), max_bytes=max_bytes):
                    return
        finally:
            self._usage.release(process)


def measure_memory(process: int) -> int:
    """Return the private memory of a process and its child processes in bytes, without shared memory.

    It takes some 100 µs. It is 0 if the kernel does not report it; then only the limit of each process applies.

    Args:
        process: Its number.
    """
    held, waiting = 0, [process]
    while waiting:
        of_one = _PROCESSES / str(waiting.pop())
        try:
            _, resident, shared, *_ = (of_one / "statm").read_text().split()
            for thread in (of_one / "task").iterdir():
                waiting += map(int, (thread / "children").read_text().split())
        except (OSError, ValueError):
            continue  # it has ended
        held += (int(resident) - int(shared)) * resource.getpagesize()
    return held
