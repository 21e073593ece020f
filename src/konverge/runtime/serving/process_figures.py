"""Figures of the process itself: pauses of the garbage collector, how late the event loop is, its tasks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from konverge.clock import Clock, SystemClock
from konverge.runtime.serving import families
from konverge.runtime.serving.series import FamilySample, distributions, numbers

__all__ = ["ProcessFigures"]

# Often enough to meet most stalls of a tenth of a second, and still ten short turns of the loop a second.
_LAG_PERIOD_SECONDS = 0.1


class ProcessFigures:
    """Measures the process.

    Args:
        clock: What the event loop's lateness is measured with.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._real = SystemClock()  # a collection takes real time, whatever time the loop lives in
        self._collection_began = 0.0
        self._pauses = distributions(families.GC_PAUSE)
        self._generations = tuple(self._pauses.of(str(generation)) for generation in range(3))
        self._lags = distributions(families.LOOP_LAG)
        self._lag = self._lags.of()
        self._build = numbers(families.BUILD)
        self._build.of(_version()).value = 1
        self._tasks = numbers(families.TASKS)
        self.last_lag_seconds = 0.0
        """How late the event loop was for the last timer."""

    @contextmanager
    def counting_pauses(self) -> Iterator[None]:
        """Count the collector's pauses while the block runs."""
        gc.callbacks.append(self._collects)
        try:
            yield
        finally:
            gc.callbacks.remove(self._collects)

    async def watch_lag(self) -> None:
        """Measure how late the event loop is, until cancelled."""
        while True:
            due = self._clock.monotonic() + _LAG_PERIOD_SECONDS
            await self._clock.sleep(_LAG_PERIOD_SECONDS)
            self.last_lag_seconds = max(0.0, self._clock.monotonic() - due)
            self._lag.observe(self.last_lag_seconds)

    def read(self) -> list[FamilySample]:
        """All of them now; in the event loop."""
        self._tasks.of().value = len(asyncio.all_tasks())
        return [self._build.read(), self._pauses.read(), self._lags.read(), self._tasks.read()]

    def _collects(self, phase: str, info: dict[str, Any]) -> None:
        # Within the collector: nothing here may wait, and what it allocates must be next to nothing.
        if phase == "start":
            self._collection_began = self._real.monotonic()
        else:
            self._generations[info["generation"]].observe(self._real.monotonic() - self._collection_began)


def _version() -> str:
    try:
        return metadata.version("konverge")
    except metadata.PackageNotFoundError:
        return "unknown"
