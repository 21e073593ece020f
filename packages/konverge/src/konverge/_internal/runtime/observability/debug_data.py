"""The data of the debug page: the internal state of the operator at one moment, as plain data.

It contains names of objects, so it is behind authentication. It contains neither values of objects nor values of
variables: the stack of a task consists of files and lines.
"""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeAlias

from konverge._internal.kube import ObjectKey
from konverge._internal.runtime.observability.metrics import Metrics
from konverge._internal.runtime.observability.sources import ObservedController, ObservedInformer, RuntimeSources
from konverge.clock import Clock

__all__ = ["DebugCollector", "Rows"]

_MAX_KEYS = 200
_MAX_TASKS = 500
_MAX_FRAMES = 20
_MAX_HISTORY = 500
_MAX_ALLOCATIONS = 25
_PATH_PARTS = 3

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = list[Row]


class DebugCollector:
    """Collects the data of the page; call it in the event loop.

    Args:
        sources: The running operator.
        clock: The clock of its controllers.
        metrics: Source of the breakers that opened; None without metrics.
    """

    def __init__(self, sources: RuntimeSources, clock: Clock, metrics: Metrics | None = None) -> None:
        self._sources = sources
        self._clock = clock
        self._metrics = metrics

    async def collect_sections(self) -> dict[str, Rows]:
        """Return all sections; a section that cannot be read contains its error and does not affect the others."""
        readers: dict[str, Callable[[], Rows]] = {
            "operator": self._describe_operator,
            "controllers": lambda: [
                self._describe_controller(controller) for controller in self._sources.controllers()
            ],
            "in flight": self._list_in_flight,
            "failing": self._list_failing,
            "breakers opened": self._list_breakers,
            "informers": lambda: [_describe_informer(informer) for informer in self._sources.informers()],
            "leases": lambda: [{"lease": name, "held here": held} for name, held in self._sources.leases().items()],
            "tasks": _list_tasks,
            "memory": _describe_memory,
            **self._sources.sections(),
        }
        sections = {name: _try_section(section) for name, section in readers.items()}
        if tracemalloc.is_tracing():
            # It walks all allocations, so it runs outside the event loop.
            sections["allocations"] = await asyncio.to_thread(_list_allocations)
        return sections

    def get_history(self, controller: str, key: ObjectKey) -> Rows | None:
        """Return the recent events of a key, oldest first; None for an unknown controller."""
        now = self._clock.monotonic()
        for candidate in self._sources.controllers():
            if candidate.name == controller:
                events = candidate.queue.history(key)[-_MAX_HISTORY:]
                return [
                    {"seconds ago": round(now - event.time, 3), "event": event.event, "detail": event.detail}
                    for event in events
                ]
        return None

    def _describe_operator(self) -> Rows:
        sources = self._sources
        state: Row = {"started": sources.is_started(), "stopping": sources.is_stopping()}
        if sources.webhooks_unready_reason is not None:
            state["webhooks"] = sources.webhooks_unready_reason() or "answer"
        if self._metrics is not None:
            state["event loop late by seconds"] = round(self._metrics.process.last_lag_seconds, 6)
        return [state]

    def _describe_controller(self, controller: ObservedController) -> Row:
        depths = dict(controller.queue.count_due())
        return {
            "controller": controller.name,
            "workers": controller.workers,
            "running": len(controller.list_run_seconds()),
            "waiting": len(controller.queue),
            "by priority": ", ".join(
                f"{priority}: {depth}" for priority, depth in sorted(depths.items(), reverse=True)
            ),
        }

    def _list_in_flight(self) -> Rows:
        running = (
            (controller, key, seconds)
            for controller in self._sources.controllers()
            for key, seconds in controller.list_run_seconds().items()
        )
        return [
            {
                **_describe_key(controller, key),
                "seconds": round(seconds, 3),
                "failures before": controller.queue.count_failures(key),
            }
            for controller, key, seconds in islice(running, _MAX_KEYS)
        ]

    def _list_failing(self) -> Rows:
        now = self._clock.monotonic()
        rows: Rows = []
        for controller in self._sources.controllers():
            for key, failures, not_before in controller.queue.list_failing(_MAX_KEYS - len(rows)):
                again = None if not_before is None else round(max(0.0, not_before - now), 3)
                rows.append({**_describe_key(controller, key), "failures": failures, "again in seconds": again})
        return rows

    def _list_breakers(self) -> Rows:
        openings = () if self._metrics is None else self._metrics.breaker_openings
        return [
            {
                "time": each.time.isoformat(timespec="seconds"),
                "controller": each.controller,
                "namespace": each.key.namespace,
                "name": each.key.name,
                "source": each.source,
            }
            for each in reversed(openings)
        ]


def _describe_key(controller: ObservedController, key: ObjectKey) -> Row:
    return {"controller": controller.name, "namespace": key.namespace, "name": key.name}


def _describe_informer(informer: ObservedInformer) -> Row:
    age, problem, statistics = informer.age_seconds, informer.last_error, informer.statistics
    return {
        "kind": str(informer.gvk),
        "synced": informer.synced,
        "age seconds": None if age is None else round(age, 1),
        "objects": len(informer.store),
        "dropped": informer.dropped,
        "unconfirmed writes": informer.unconfirmed_writes,
        "resource version": statistics.last_resource_version,
        "lists": statistics.lists,
        "watches": statistics.watches,
        "events": statistics.events,
        "problem": "" if problem is None else str(problem),
    }


def _list_tasks() -> Rows:
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    return [{"task": task.get_name(), "stack": _list_frames(task)} for task in tasks[:_MAX_TASKS]]


def _list_frames(task: asyncio.Task[Any]) -> list[str]:
    """Return a task's position, outermost first: the chain of awaited coroutines, which the task's stack omits."""
    locations: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None and len(locations) < _MAX_FRAMES:
        prefix = next((name for name in ("cr", "gi", "ag") if hasattr(awaited, f"{name}_frame")), None)
        frame: FrameType | None = None if prefix is None else getattr(awaited, f"{prefix}_frame")
        if prefix is None or frame is None:
            break
        locations.append(_format_location(frame.f_code, frame.f_lineno))
        awaited = getattr(awaited, "gi_yieldfrom" if prefix == "gi" else f"{prefix}_await")
    return locations


def _format_location(code: CodeType, line: int) -> str:
    return f"{_shorten_path(code.co_filename)}:{line} {code.co_name}"


def _shorten_path(path: str) -> str:
    return "/".join(Path(path).parts[-_PATH_PARTS:])


def _describe_memory() -> Rows:
    rows: Rows = [
        {"what": "objects frozen", "value": gc.get_freeze_count()},
        {"what": "collector enabled", "value": gc.isenabled()},
        {"what": "collector thresholds", "value": str(gc.get_threshold())},
        {"what": "objects since the last collection", "value": str(gc.get_count())},
    ]
    for generation, stats in enumerate(gc.get_stats()):
        rows += ({"what": f"generation {generation}: {name}", "value": value} for name, value in stats.items())
    if tracemalloc.is_tracing():
        current, peak = tracemalloc.get_traced_memory()
        rows += [{"what": "bytes traced", "value": current}, {"what": "bytes traced at most", "value": peak}]
    return rows


def _list_allocations() -> Rows:
    if not tracemalloc.is_tracing():
        return []
    statistics = tracemalloc.take_snapshot().statistics("lineno")
    return [
        {
            "place": f"{_shorten_path(each.traceback[0].filename)}:{each.traceback[0].lineno}",
            "bytes": each.size,
            "blocks": each.count,
        }
        for each in statistics[:_MAX_ALLOCATIONS]
    ]


def _try_section(section: Callable[[], Iterable[Row]]) -> Rows:
    try:
        return list(section())
    except Exception as error:  # noqa: BLE001  # a page for finding errors must survive them
        return [{"failed": type(error).__name__}]
