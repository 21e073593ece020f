"""Calls of one provider: so many at once, each with a time limit that holds whatever the provider does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from konverge_box.providers.plugin import ProviderError

__all__ = ["CallRunner", "ProviderTimeoutError"]

T = TypeVar("T")

_ENDING_SECONDS = 5.0


class ProviderTimeoutError(ProviderError):
    """A call did not end in time; it was cancelled, and what it had begun may have happened or not."""


class CallRunner:
    """Runs the calls of one provider, for all owners of the process.

    A call that does not end when it is cancelled keeps its place among the workers, and its owner has no other call to
    that provider until it ends: two calls never work on the same items at once.

    Args:
        workers: How many calls at once.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._slots = asyncio.Semaphore(workers)
        self._stuck: dict[str, asyncio.Task[Any]] = {}

    async def run_call(self, owner_uid: str, call: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Call, and answer what came back; cancelled, it ends the call first.

        Args:
            owner_uid: For whom.
            call: Makes the coroutine.
            seconds: How long the call may take, and how long it may wait for its turn.

        Raises:
            ProviderTimeoutError: It took too long, or had no turn.
            Exception: What the call raised.
        """
        if owner_uid in self._stuck:
            raise ProviderTimeoutError("an earlier call was cancelled and still has not ended; it is waited for")
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise ProviderTimeoutError(
                f"had no turn within {seconds:g} s: {self._workers} other calls take long"
            ) from None
        task = asyncio.get_running_loop().create_task(call())
        task.add_done_callback(self._remove_task)
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            await self._cancel_task(owner_uid, task)
            raise
        if not done:
            await self._cancel_task(owner_uid, task)
            raise ProviderTimeoutError(f"did not end within {seconds:g} s, and was cancelled")
        if task.cancelled():
            raise ProviderError("the provider cancelled itself")
        return task.result()

    def list_stuck_owners(self) -> frozenset[str]:
        """The owners whose calls were cancelled and have not ended."""
        return frozenset(self._stuck)

    async def close(self) -> None:
        """End what has not ended yet, as far as it lets itself be ended."""
        if self._stuck:
            for task in self._stuck.values():
                task.cancel()
            await asyncio.wait(self._stuck.values(), timeout=_ENDING_SECONDS)

    async def _cancel_task(self, owner_uid: str, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self._stuck[owner_uid] = task
        try:
            await asyncio.wait({task}, timeout=_ENDING_SECONDS)
        finally:
            if task.done():
                del self._stuck[owner_uid]
            else:
                task.add_done_callback(lambda _: self._stuck.pop(owner_uid))

    def _remove_task(self, task: asyncio.Task[Any]) -> None:
        self._slots.release()
        if not task.cancelled():
            task.exception()  # else an error after the time limit would be reported as one that nobody asked for
