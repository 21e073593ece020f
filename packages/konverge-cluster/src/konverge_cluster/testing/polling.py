"""Waiting for what a cluster does in its own time."""

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
_SHOWN_CHARACTERS = 4000


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
    """Ask again and again until the answer is truthy, and return it.

    An `AssertionError` or a `KonvergeError` (the cluster does not have it, refuses, conflicts) counts as "not yet"; any
    other exception is a mistake of the check and passes through.

    Args:
        check: What is asked; plain or async.
        clock: On whose time the pauses between two questions pass.
        timeout_seconds: The deadline, for the check that is under way too.
        describe: What is awaited, as a sentence, for the failure's message.

    Raises:
        AssertionError: It was not so in time; the message holds the last answer or error.
    """
    __tracebackhide__ = True
    last = "nothing: the first answer did not come in time"
    cause: BaseException | None = None
    pause_seconds = _FIRST_DELAY_SECONDS
    deadline = asyncio.timeout(timeout_seconds)
    try:
        async with deadline:
            while True:
                try:
                    found = check()
                    answer = await found if inspect.isawaitable(found) else found
                except (AssertionError, KonvergeError) as error:
                    last, cause = f"{type(error).__name__}: {error}", error
                else:
                    if answer:
                        return answer
                    last, cause = repr(answer), None
                await clock.sleep(pause_seconds)
                pause_seconds = min(pause_seconds * _DELAY_GROWTH, _MAX_DELAY_SECONDS)
    except TimeoutError:
        if not deadline.expired():
            raise  # the check's own
        awaited = describe or getattr(check, "__name__", "the check")
        shown = last if len(last) <= _SHOWN_CHARACTERS else last[:_SHOWN_CHARACTERS] + " …"
        raise AssertionError(f"not within {timeout_seconds:g} s: {awaited}\nthe last answer was {shown}") from cause
