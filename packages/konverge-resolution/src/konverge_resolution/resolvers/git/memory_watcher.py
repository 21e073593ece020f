"""How much memory git has: all of it that runs at the same time, not only each process for itself.

The limit of a process says nothing of many. With a few references at once to a hostile server, somebody could use up
the memory of the Pod, and the kernel might end the resolvers' own process, which has the same memory.
"""

from __future__ import annotations

import resource
from pathlib import Path

from konverge.clock import SystemClock
from konverge_resolution.usage_limit import SharedUsage

__all__ = ["MemoryWatcher", "measure_memory"]

_POLL_SECONDS = 0.25
_PROCESSES = Path("/proc")


class MemoryWatcher:
    """The memory of all programs that are watched here; a resolver has one for all that it runs."""

    def __init__(self) -> None:
        self._clock = SystemClock()  # programs grow in real time, whatever a resolution's clock says
        self._usage: SharedUsage[int] = SharedUsage()

    async def wait_until_exceeded(self, process: int, *, max_bytes: int) -> None:
        """Return as soon as all together hold too much, and this one the most of it; otherwise never.

        Args:
            process: Its number; what it has started counts with it.
            max_bytes: How much all may hold together.
        """
        try:
            while True:
                await self._clock.sleep(_POLL_SECONDS)
                if self._usage.record_and_check(process, measure_memory(process), max_bytes=max_bytes):
                    return
        finally:
            self._usage.release(process)


def measure_memory(process: int) -> int:
    """How much memory a process and all that it has started have for themselves, without what they share with others.

    It takes some 100 µs. Where the kernel does not tell, it is nothing, and the limit of each process is all there is.

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
