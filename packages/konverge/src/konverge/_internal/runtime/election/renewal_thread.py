"""Renewal in a separate thread: a main loop that is blocked for some seconds does not lose the Lease.

The thread has its own event loop and, through its own client, its own connections; a task that waits in the main loop
cannot delay it. (A C function that holds the interpreter lock for seconds stops the thread too: then the permit
expires.) In turn, the thread watches the main loop: see `runtime.election.main_loop_watchdog`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from konverge._internal.client.write_permit import WritePermit
from konverge._internal.runtime.blocked_loop import describe_stack
from konverge._internal.runtime.election.campaigns import Campaign, CampaignListener
from konverge._internal.runtime.election.main_loop_watchdog import MainLoopWatchdog, WatchdogAction
from konverge.clock import Clock

__all__ = ["LEASE_LOST_EXIT_CODE", "ClosableClient", "RenewalThread"]

_log = logging.getLogger("konverge.runtime")

LEASE_LOST_EXIT_CODE = 75
"""Exit code of a process whose main loop did not process the loss of its Lease (``EX_TEMPFAIL``: restart it)."""

_SHUTDOWN_SECONDS = 1.0
_MAX_SECONDS_BETWEEN_BEATS = 1.0


class ClosableClient(Protocol):
    """A client that the thread closes at its end."""

    async def close(self) -> None:
        """Close the connections of the client."""


C = TypeVar("C", bound=ClosableClient)


class RenewalThread:
    """Runs a campaign in a thread, as an async context manager of the main loop.

    Leaving the block stops the campaign, which releases its Leases. If that is cancelled, the thread ends by itself.

    Args:
        new_client: Creates the client, in the thread.
        new_campaign: Creates the campaign from the client, in the thread.
        listener: Receives the events of the campaign, in the main loop.
        clock: Source of time; callable from any thread.
        bound: Time without a heartbeat of the main loop after which the Leases are not renewed.
        grace: Time in which the main loop must process the loss of a Lease before the process is ended.
        stop_timeout: Time limit for the end of the thread on leaving.
        crashed: Called, in the main loop, when the campaign ended with an unexpected error; all Leases are lost then.
        exit_process: Ends the process; receives the exit code.
    """

    def __init__(
        self,
        new_client: Callable[[], C],
        new_campaign: Callable[[C, CampaignListener], Campaign],
        listener: CampaignListener,
        *,
        clock: Clock,
        bound: timedelta,
        grace: timedelta,
        stop_timeout: timedelta,
        crashed: Callable[[BaseException], None],
        exit_process: Callable[[int], object] = os._exit,
    ) -> None:
        self._new_client = new_client
        self._new_campaign = new_campaign
        self._listener = listener
        self._clock = clock
        self._stop_timeout_seconds = stop_timeout.total_seconds()
        self._crashed = crashed
        self._exit_process = exit_process
        self._interval = min(_MAX_SECONDS_BETWEEN_BEATS, bound.total_seconds() / 5, grace.total_seconds() / 5)
        self._watchdog = MainLoopWatchdog(clock.monotonic(), bound=bound.total_seconds(), grace=grace.total_seconds())
        self._main = threading.get_ident()
        self._ended: Future[None] = Future()
        self._stop_requested = threading.Event()
        self._releases = True
        self._stopped: Callable[[], None] | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._main = threading.get_ident()
        self._watchdog.beaten = self._clock.monotonic()
        self._beating = asyncio.create_task(self._beat(), name="heartbeat for the renewal of Leases")
        # A daemon thread: it does not keep the process alive after the main thread.
        self._thread = threading.Thread(target=self._run, name="konverge renewal of Leases", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._releases = error is None  # otherwise the work that needed the Leases was cut short
            self._stop_requested.set()
            if self._stopped is not None:
                self._stopped()
            # The timeout would cancel a wrapped future, and with it the thread's; the shield prevents that.
            ended = asyncio.shield(asyncio.wrap_future(self._ended))
            try:
                async with asyncio.timeout(self._stop_timeout_seconds):
                    await ended
                self._thread.join(_SHUTDOWN_SECONDS)  # setting the future was the thread's last action
            except TimeoutError:
                _log.warning(
                    "the Leases were not released within %g s: they expire by themselves", self._stop_timeout_seconds
                )
        finally:
            self._beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._watchdog.beaten = self._clock.monotonic()
            await self._clock.sleep(self._interval)

    def _run(self) -> None:
        """Run the campaign in the thread."""
        try:
            asyncio.run(self._run_campaign())
        except BaseException as error:  # noqa: BLE001  # reported to the main loop, which decides
            _log.exception("the renewal of Leases ended with an unexpected error")
            with _suppress_closed_loop():
                self._loop.call_soon_threadsafe(self._crashed, error)
        finally:
            self._ended.set_result(None)

    async def _run_campaign(self) -> None:
        client = self._new_client()
        try:
            campaign = self._new_campaign(client, _Messenger(self._listener, self._loop, self._watchdog, self._clock))
            loop = asyncio.get_running_loop()

            def stop() -> None:
                with _suppress_closed_loop():  # here: the loop of the thread, if it has ended already
                    loop.call_soon_threadsafe(partial(campaign.stop, releases=self._releases))

            self._stopped = stop
            if self._stop_requested.is_set():
                campaign.stop(releases=self._releases)
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch_main_loop(campaign))
                await campaign.run()
                watching.cancel()
        finally:
            await client.close()

    async def _watch_main_loop(self, campaign: Campaign) -> None:
        before = WatchdogAction.RENEW
        while True:
            await self._clock.sleep(self._interval)
            now = self._clock.monotonic()
            action = self._watchdog.decide(now)
            if action is before:
                continue
            match action:
                case WatchdogAction.EXIT:
                    _log.critical(
                        "the main loop ignored the loss of a Lease: ending the process (exit code %d). It is at\n%s",
                        LEASE_LOST_EXIT_CODE,
                        describe_stack(self._main),
                    )
                    self._exit_process(LEASE_LOST_EXIT_CODE)
                case WatchdogAction.SUSPEND:
                    _log.error(
                        "the main loop has been blocked for %.1f s: the renewal of Leases is suspended. It is at\n%s",
                        self._watchdog.compute_silence(now),
                        describe_stack(self._main),
                    )
                    campaign.suspend(suspended=True)
                case WatchdogAction.RENEW:
                    _log.warning("the main loop runs again: the renewal of Leases resumes")
                    campaign.suspend(suspended=False)
            before = action


class _Messenger:
    """Sends a campaign's events to the main loop, in order."""

    def __init__(
        self, listener: CampaignListener, loop: asyncio.AbstractEventLoop, watchdog: MainLoopWatchdog, clock: Clock
    ) -> None:
        self._listener = listener
        self._loop = loop
        self._watchdog = watchdog
        self._clock = clock
        self._losses = 0

    def on_acquired(self, shard: int, permit: WritePermit) -> None:
        """Report the shard to the main loop."""
        with _suppress_closed_loop():
            self._loop.call_soon_threadsafe(self._listener.on_acquired, shard, permit)

    def on_lost(self, shard: int) -> None:
        """Report the loss to the main loop, and wait for its acknowledgment."""
        self._losses += 1
        self._watchdog.record_message(self._losses, self._clock.monotonic())
        with _suppress_closed_loop():
            self._loop.call_soon_threadsafe(self._deliver_loss, shard, self._losses)

    async def on_release(self, shard: int) -> None:
        """Let the main loop end the work for the shard."""
        released: Future[Any] = asyncio.run_coroutine_threadsafe(self._listener.on_release(shard), self._loop)
        await asyncio.wrap_future(released)

    def _deliver_loss(self, shard: int, message: int) -> None:
        self._listener.on_lost(shard)
        self._watchdog.acknowledge(message)


@contextmanager
def _suppress_closed_loop() -> Iterator[None]:
    """Ignore an event for a loop that is closed."""
    try:
        yield
    except RuntimeError:
        _log.debug("an event was dropped: its loop is closed")
