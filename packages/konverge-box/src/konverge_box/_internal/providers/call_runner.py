"""The calls of one provider: a limited number at a time, each with a time limit that the provider cannot exceed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from konverge_box._internal.providers.plugin import ProviderError

__all__ = ["CallRunner", "ProviderTimeoutError"]

T = TypeVar("T")

_ENDING_SECONDS = 5.0


class ProviderTimeoutError(ProviderError):
    """An error of a call that did not end in time and was cancelled. Its effects are unknown."""


class CallRunner:
    """The runner of the calls of one provider, for all owners of the process.

    A call that does not end after its cancellation keeps its worker. Its owner cannot call that provider again until it
    ends: two calls never work on the same items at the same time.

    Args:
        workers: The maximum number of concurrent calls.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._slots = asyncio.Semaphore(workers)
        self._stuck: dict[str, asyncio.Task[Any]] = {}

    async def run_call(self, owner_uid: str, call: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
        """Run a call and return its result. A cancellation cancels the call and waits for its end.

        Args:
            owner_uid: The UID of the owner.
            call: Creates the coroutine.
            seconds: The time limit of the call, and of the wait for a worker.

        Raises:
            ProviderTimeoutError: The call took too long, or no worker was free in time.
            Exception: The error of the call.
        """
        if owner_uid in self._stuck:
            raise ProviderTimeoutError("not called: an earlier call was cancelled and has not ended yet")
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise ProviderTimeoutError(
                f"no worker was free within {seconds:g} s: {self._workers} other calls are running"
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
            raise ProviderTimeoutError(f"the call did not end within {seconds:g} s and was cancelled")
        if task.cancelled():
            raise ProviderError("the provider cancelled its own call")
        return task.result()

    def list_stuck_owners(self) -> frozenset[str]:
        """Return the owners whose calls were cancelled and have not ended."""
        return frozenset(self._stuck)

    async def close(self) -> None:
        """Cancel the calls that have not ended, and wait a limited time for their end."""
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
            task.exception()  # retrieve the exception, so that asyncio does not log it
