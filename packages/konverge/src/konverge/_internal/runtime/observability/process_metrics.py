"""Metrics of the process itself: pauses of the garbage collector, lag of the event loop, number of tasks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any

from konverge._internal.runtime.observability import metric_families
from konverge._internal.runtime.observability.metric_series import (
    FamilySample,
    build_histogram_series,
    build_number_series,
)
from konverge.clock import Clock, SystemClock

__all__ = ["ProcessMetrics"]

# Short enough to detect most stalls of a tenth of a second, at the cost of ten short loop iterations a second.
_LAG_PERIOD_SECONDS = 0.1


class ProcessMetrics:
    """Measures the process.

    Args:
        clock: Measures the lag of the event loop.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._real = SystemClock()  # a collection takes real time, even in simulated time
        self._collection_began = 0.0
        self._pauses = build_histogram_series(metric_families.GC_PAUSE)
        self._generations = tuple(self._pauses.get_child(str(generation)) for generation in range(3))
        self._lags = build_histogram_series(metric_families.LOOP_LAG)
        self._lag = self._lags.get_child()
        self._build = build_number_series(metric_families.BUILD)
        self._build.get_child(_read_version()).value = 1
        self._tasks = build_number_series(metric_families.TASKS)
        self.last_lag_seconds: float = 0.0
        """Lag of the event loop for the last timer, in seconds."""

    @contextmanager
    def measure_pauses(self) -> Iterator[None]:
        """Measure the garbage collector's pauses while the block runs."""
        gc.callbacks.append(self._on_collection)
        try:
            yield
        finally:
            gc.callbacks.remove(self._on_collection)

    async def watch_lag(self) -> None:
        """Measure the lag of the event loop, until cancelled."""
        while True:
            due = self._clock.monotonic() + _LAG_PERIOD_SECONDS
            await self._clock.sleep(_LAG_PERIOD_SECONDS)
            self.last_lag_seconds = max(0.0, self._clock.monotonic() - due)
            self._lag.observe(self.last_lag_seconds)

    def read(self) -> list[FamilySample]:
        """Return the present samples of all families; call it in the event loop."""
        self._tasks.get_child().value = len(asyncio.all_tasks())
        return [self._build.read(), self._pauses.read(), self._lags.read(), self._tasks.read()]

    def _on_collection(self, phase: str, info: dict[str, Any]) -> None:
        # This runs inside the collector: it must not wait, and must allocate almost nothing.
        if phase == "start":
            self._collection_began = self._real.monotonic()
        else:
            self._generations[info["generation"]].observe(self._real.monotonic() - self._collection_began)


def _read_version() -> str:
    try:
        return metadata.version("konverge")
    except metadata.PackageNotFoundError:
        return "unknown"
