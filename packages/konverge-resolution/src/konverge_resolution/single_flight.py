"""Single flight: whoever asks for what is being fetched already waits for that, instead of fetching it again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from konverge.cancellation import await_shielded

__all__ = ["SingleFlight"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass
class _SharedCall(Generic[V]):
    task: asyncio.Task[V]
    waiters: int = 0


class SingleFlight(Generic[K, V]):
    """What is under way, by key. A flight that nobody waits for any more is cancelled, and has ended then."""

    def __init__(self) -> None:
        self._calls: dict[K, _SharedCall[V]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    async def join(self, key: K, start: Callable[[], Awaitable[V]]) -> V:
        """What the flight under this key comes to; the first who asks starts it.

        Cancelling one who waits leaves the others their flight.

        Args:
            key: Who has the same key wants the same.
            start: What to do when nobody does it yet.

        Raises:
            Exception: Whatever it raises, for everybody who waits.
        """
        flight = self._calls.get(key)
        if flight is None:

            async def run() -> V:
                try:
                    return await start()
                finally:
                    # At once, so that who comes after the end starts anew.
                    self._drop(key, asyncio.current_task())

            flight = self._calls[key] = _SharedCall(asyncio.create_task(run()))
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                # Before it has ended, which may take a while: who comes now must not be cancelled with it.
                self._drop(key, flight.task)
                flight.task.cancel()
                # Its processes and connections are gone before this returns; what it ends with is nobody's business.
                await await_shielded(asyncio.wait([flight.task]))

    def _drop(self, key: K, task: asyncio.Task[V] | None) -> None:
        flight = self._calls.get(key)
        if flight is not None and flight.task is task:
            del self._calls[key]
