"""Waits for eventual states of a cluster."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from konverge.clock import Clock
from konverge.errors import KonvergeError

__all__ = ["eventually"]

T = TypeVar("T")

_FIRST_DELAY_SECONDS = 0.02
_MAX_DELAY_SECONDS = 0.25
_DELAY_GROWTH = 1.5
_MAX_EXCERPT_CHARACTERS = 4000


@overload
async def eventually(
    check: Callable[[], Awaitable[T | None]], *, clock: Clock, timeout_seconds: float = 30.0, describe: str = ""
) -> T: ...


@overload
async def eventually(
    check: Callable[[], T | None], *, clock: Clock, timeout_seconds: float = 30.0, describe: str = ""
) -> T: ...


async def eventually(
    check: Callable[[], Any], *, clock: Clock, timeout_seconds: float = 30.0, describe: str = ""
) -> Any:
    """Repeat a check until its result is truthy, and return the result.

    An `AssertionError` or a `KonvergeError` (not found, forbidden, conflict) counts as "not yet". Any other exception
    is an error of the check and propagates.

    Args:
        check: The check; plain or async.
        clock: The clock for the delays between two checks.
        timeout_seconds: The deadline; it also interrupts a running check.
        describe: The awaited state as a sentence, for the error message.

    Raises:
        AssertionError: The check did not succeed in time; the message contains the last result or error.
    """
    __tracebackhide__ = True
    last = "nothing: the first check did not end in time"
    cause: BaseException | None = None
    pause_seconds = _FIRST_DELAY_SECONDS
    deadline = asyncio.timeout(timeout_seconds)
    try:
        async with deadline:
            while True:
                try:
                    result = check()
                    outcome = await result if inspect.isawaitable(result) else result
                except (AssertionError, KonvergeError) as error:
                    last, cause = f"{type(error).__name__}: {error}", error
                else:
                    if outcome:
                        return outcome
                    last, cause = repr(outcome), None
                await clock.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * _DELAY_GROWTH, _MAX_DELAY_SECONDS)
    except TimeoutError:
        if not deadline.expired():
            raise  # a timeout inside the check
        awaited = describe or getattr(check, "__name__", "the check")
        excerpt = last if len(last) <= _MAX_EXCERPT_CHARACTERS else last[:_MAX_EXCERPT_CHARACTERS] + " …"
        raise AssertionError(f"not within {timeout_seconds:g} s: {awaited}\nthe last result was {excerpt}") from cause
