"""Cancellation at any moment, repeated, and the leaks that it leaves."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Coroutine, Iterable
from typing import Any

__all__ = ["cancel_again", "find_leaks", "find_leaks_of_each", "run_loop_turns"]


async def run_loop_turns(times: int = 1) -> None:
    """Let the loop have its turn that often: what is ready goes on by one step each time. No time passes."""
    for _ in range(times):
        await asyncio.sleep(0)  # noqa: TID251  # no time passes


async def cancel_again(task: asyncio.Task[Any], times: int = 2) -> None:
    """Cancel it that often, a turn apart: what it awaits while it ends is cancelled as well."""
    for _ in range(times):
        task.cancel()
        await run_loop_turns()


def find_leaks(working: Coroutine[Any, Any, None]) -> list[str]:
    """Return the leaks after the end of a loop (tasks, open sockets, processes) and the loop's warnings."""
    return find_leaks_of_each([working])


def find_leaks_of_each(workings: Iterable[Coroutine[Any, Any, None]]) -> list[str]:
    """The same of several, each in a loop of its own: in a common one, those that come later would give it time."""
    left: list[str] = []

    async def work(working: Coroutine[Any, Any, None]) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context["message"]))
        await working
        left.extend(str(other) for other in asyncio.all_tasks() if other is not asyncio.current_task())

    gc.collect()  # what others have left
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        for working in workings:
            asyncio.run(work(working))
        gc.collect()
    return left + [str(warning.message) for warning in warned]
