"""The number of keys per second through the work queue: added, taken and done, without reconciles.

The floor is a queue without the guarantees of the work queue: asyncio's own priority queue with the same keys.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from konverge._internal.runtime import Queue
from konverge.clock import SystemEntropy
from konverge.kube import ObjectKey

_ROUNDS = 7
_TIMES = 30
_KEYS = [ObjectKey("default", f"object-{number}") for number in range(1_000)]


def _ours() -> None:
    queue: Queue[ObjectKey] = Queue(SystemEntropy())
    for _ in range(_TIMES):
        for key in _KEYS:
            queue.add(key, 1.0, priority=0, reason="changed")
        while (taken := queue.take(1.0)) is not None:
            queue.mark_done(taken, 1.0)


def _floor() -> None:
    queue: asyncio.PriorityQueue[tuple[int, int, ObjectKey]] = asyncio.PriorityQueue()
    for _ in range(_TIMES):
        for number, key in enumerate(_KEYS):
            queue.put_nowait((0, number, key))
        while not queue.empty():
            queue.get_nowait()
            queue.task_done()


def _best_rate(work: Callable[[], None]) -> float:
    seconds = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return _TIMES * len(_KEYS) / min(seconds)


def measure() -> Iterator[str]:
    """Run the measurement; yield the lines of the report."""
    ours, floor = _best_rate(_ours), _best_rate(_floor)
    yield (
        f"work queue: {ours:,.0f} keys/s added, taken and done (goal 300,000); asyncio.PriorityQueue, "
        f"which merges nothing: {floor:,.0f} ({ours / floor:.2f} of it)"
    )


if __name__ == "__main__":
    for line in measure():
        print(line)
