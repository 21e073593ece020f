"""Single flight: callers with the same key share one running call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from konverge._internal.cancellation import await_shielded

__all__ = ["SingleFlight"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass
class _SharedCall(Generic[V]):
    task: asyncio.Task[V]
    waiters: int = 0


class SingleFlight(Generic[K, V]):
    """Running calls by key. A call without waiting callers is cancelled and awaited."""

    def __init__(self) -> None:
        self._calls: dict[K, _SharedCall[V]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def join(self, key: K, start: Callable[[], Awaitable[V]]) -> V:
        """Return the result of the call with this key; the first caller starts it.

        The cancellation of one caller does not affect the others.

        Args:
            key: Callers with the same key share the call.
            start: Starts the call.

        Raises:
            Exception: Any exception of the call, for all waiting callers.
        """
        call = self._calls.get(key)
        if call is None:

            async def run() -> V:
                try:
                    return await start()
                finally:
                    # Before the result is returned, so that the next caller starts a new call.
                    self._drop(key, asyncio.current_task())

            call = self._calls[key] = _SharedCall(asyncio.create_task(run()))
        call.waiters += 1
        try:
            return await asyncio.shield(call.task)
        finally:
            call.waiters -= 1
            if not call.waiters and not call.task.done():
                # Before it has ended, which may take a while: a new caller must not be cancelled with it.
                self._drop(key, call.task)
                call.task.cancel()
                # Its processes and connections end before this returns; its result is discarded.
                await await_shielded(asyncio.wait([call.task]))

    def _drop(self, key: K, task: asyncio.Task[V] | None) -> None:
        call = self._calls.get(key)
        if call is not None and call.task is task:
            del self._calls[key]
