"""The author's functions of an operator, wrapped so that their runs are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from konverge._internal.message_text import to_printable
from konverge._internal.operator.component_factories import ComponentFactories
from konverge._internal.operator.function_calls import is_async, name_function
from konverge._internal.operator.registrations import OperatorRegistrations
from konverge.errors import format_error

__all__ = ["FunctionRuns", "wrap_functions"]

_MAX_ERROR = 200


@dataclass(slots=True)
class FunctionRuns:
    """The runs of one function.

    Args:
        owner: The class of its owners.
        name: The name of the function.
        purpose: When it is called, for messages; empty for a part of each reconcile.
        begun: The number of runs that have begun.
        error: The last error; empty without one.
    """

    owner: type[Any]
    name: str
    purpose: str = ""
    begun: int = 0
    error: str = ""


def wrap_functions(registered: OperatorRegistrations) -> list[FunctionRuns]:
    """Replace the author's functions by ones that record their runs, and return the records in order."""
    return list(_wrap_all(registered))


def _wrap_all(registered: OperatorRegistrations) -> Iterator[FunctionRuns]:
    for index, registration in enumerate(registered.classes):
        cls, reconciler = registration.cls, registration.reconciler
        if isinstance(reconciler, ComponentFactories):
            parts: list[Any] = []
            for part in reconciler.parts:
                if is_async(part):
                    runs = FunctionRuns(cls, name_function(part))
                    yield runs
                    part = _wrap(part, runs)
                parts.append(part)
            reconciler.parts = tuple(parts)
            if is_async(reconciler.status):
                runs = FunctionRuns(cls, name_function(reconciler.status))
                yield runs
                reconciler.status = _wrap(reconciler.status, runs)
        else:
            runs = FunctionRuns(cls, name_function(reconciler))
            yield runs
            registered.classes[index] = replace(registration, reconciler=_wrap(reconciler, runs))
        if cls in registered.finalizers:
            cleanup = registered.finalizers[cls]
            runs = FunctionRuns(cls, name_function(cleanup.reconciler), "finalizer")
            yield runs
            registered.finalizers[cls] = replace(cleanup, reconciler=_wrap(cleanup.reconciler, runs))
    for index, task in enumerate(registered.tasks):
        runs = FunctionRuns(task.cls, task.name, "task" if task.interval is None else "timer")
        yield runs
        registered.tasks[index] = replace(task, function=_wrap(task.function, runs))


def _wrap(function: Callable[..., Awaitable[Any]], runs: FunctionRuns) -> Callable[..., Awaitable[Any]]:
    async def run(*arguments: Any) -> Any:
        runs.begun += 1
        try:
            return await function(*arguments)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            runs.error = to_printable(" ".join(format_error(error).split()), _MAX_ERROR)
            raise

    run.__name__ = runs.name
    return run
