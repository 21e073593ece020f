"""Calls of an author's functions with an owner and a context: their shape, their time limit and their result."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias, TypeGuard, TypeVar

from konverge._internal.operator.owner_context import OwnerContext
from konverge._internal.runtime import ReconcileTimeoutError, Result

__all__ = [
    "Reconciler",
    "accepts",
    "await_with_timeout",
    "check_result",
    "is_async",
    "merge_results",
    "name_function",
]

T = TypeVar("T")

Reconciler: TypeAlias = Callable[[T, OwnerContext], Awaitable[Result | None]]
"""An author's reconcile function: gets the typed owner and the context of the reconcile."""

_SHARE_OF_TIMEOUT = 0.9  # the rest is for the status write


def is_async(function: object) -> TypeGuard[Callable[..., Awaitable[Any]]]:
    """Return True for an async function, also if it is partial, or the call of an instance."""
    while isinstance(function, partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or (
        callable(function) and inspect.iscoroutinefunction(type(function).__call__)
    )


def accepts(function: Callable[..., object], count: int) -> bool:
    """Return True for a function that can be called with that number of arguments, or if Python cannot tell."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def name_function(function: object) -> str:
    """Return the name of a function for messages."""
    return str(getattr(function, "__name__", None) or getattr(getattr(function, "func", None), "__name__", function))


async def await_with_timeout(awaitable: Awaitable[T], timeout: timedelta, what: str) -> T:
    """Wait for an author's function for most of the time limit of a reconcile.

    The controller's own deadline is later: it cancels the reconcile, which leaves no report.

    Args:
        awaitable: The running function.
        timeout: The time limit of the reconcile.
        what: The function, for the message.

    Raises:
        konverge._internal.runtime.ReconcileTimeoutError: The function did not end in time; it was cancelled.
        Exception: The exception of the function.
        asyncio.CancelledError: The reconcile was cancelled.
    """
    seconds = None if timeout == timedelta.max else _SHARE_OF_TIMEOUT * timeout.total_seconds()
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await awaitable
    except TimeoutError:
        if not deadline.expired():
            raise
        raise ReconcileTimeoutError(f"{what} did not end within {seconds:g} s") from None


def check_result(result: object, what: str) -> Result | None:
    """Return the result of a reconcile function.

    Raises:
        TypeError: It is neither None nor a `Result`.
    """
    if result is None or isinstance(result, Result):
        return result
    raise TypeError(f"{what} returned a {type(result).__name__}: expected None or a konverge.Result")


def merge_results(one: Result | None, other: Result | None) -> Result | None:
    """Return the result with the earlier requeue and the higher priority of two."""
    if one is None or other is None:
        return one or other
    times = [result.requeue_after for result in (one, other) if result.requeue_after is not None]
    return replace(one, requeue_after=min(times, default=None), priority=max(one.priority, other.priority))
