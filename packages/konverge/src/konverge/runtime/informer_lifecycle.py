"""Which kinds are held in memory: started before they are needed, stopped when nobody reads them any more.

The kinds of owners and those that are watched are there from the start. Others come with the first pass that reads
them, or ahead of it where this process stands by, and go with the last.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from konverge.clock import Clock
from konverge.errors import KindNotServedError, KonvergeError
from konverge.kube import GroupVersionKind
from konverge.runtime.cached_client import CachedClientFactory
from konverge.runtime.event_router import EventRouter
from konverge.runtime.owner_reconciler import OwnerKind
from konverge.runtime.read_tracking import ReadingOwner
from konverge.runtime.start_steps import StartSteps

__all__ = ["InformerLifecycle"]

_log = logging.getLogger("konverge.runtime")

# How often to look for informers that nobody reads: one that is found twice in a row is stopped.
_SWEEP_SECONDS = 60.0
# Of so many owners of a kind, a stand-by looks which kinds their passes will read.
_WARM_OWNERS = 100
# How often it looks whether there are new ones.
_WARM_SECONDS = 5.0
# How often to look whether a watched kind that was not served is served now.
_ABSENT_SECONDS = 10.0


class InformerLifecycle:
    """Starts and stops the informers of a process; ``async with`` it. Leaving the block ends what looks after them.

    Args:
        clients: What the clients of passes share: the informers, and who reads what.
        routing: Is told which kinds are watched.
        clock: The time.
    """

    def __init__(self, clients: CachedClientFactory, routing: EventRouter, *, clock: Clock) -> None:
        self._clients = clients
        self._informers = clients.informers
        self._read_tracker = clients.read_tracker
        self._event_router = routing
        self._clock = clock
        self._warm: set[GroupVersionKind] = set()
        self._group = asyncio.TaskGroup()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        # An error of the block passes through by itself; given to the group, it would come out wrapped.
        if error is None or isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, traceback)
        else:
            await self._group.__aexit__(None, None, None)

    async def start(
        self, owners: Iterable[GroupVersionKind], watched: Iterable[GroupVersionKind], steps: StartSteps
    ) -> None:
        """Start the informers of these kinds, and wait until they are synced.

        Args:
            owners: The kinds of owners.
            watched: What else is watched; a kind that is not served is started as soon as it is.
            steps: Tries again what fails.

        Raises:
            konverge.errors.StartError: One of them cannot be listed, and the time limit of the start has passed.
        """
        for gvk in owners:
            await steps.run_step(f"listing {gvk}", partial(self._clients.get_informer, gvk))
        for gvk in dict.fromkeys(watched):
            await steps.run_step(f"listing {gvk}", partial(self._start_watched, gvk))

    def stop_unread(self) -> None:
        """Stop, from now on, the informers of kinds that nobody reads any more."""
        self._start_task(self._stop_unread_periodically(), "stop unread informers")

    def warm_up(self, kinds: Sequence[OwnerKind]) -> None:
        """Start, from now on, the informers that passes over such owners will need, as far as that can be told."""
        self._start_task(self._warm_up(kinds), "warm up")

    def keep_warm(self) -> None:
        """Hold the kinds that are read now, even if nobody reads them any more."""
        self._warm |= self._read_tracker.list_kinds()

    async def _start_watched(self, gvk: GroupVersionKind) -> None:
        try:
            await self._clients.get_informer(gvk)
        except KindNotServedError as error:
            _log.info("%s is watched as soon as it is served: %s", gvk, error)
            self._event_router.open_kind(gvk)
            self._start_task(self._watch_when_served(gvk), f"watch {gvk} when it is served")

    def _start_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(self._group.create_task(work, name=name))

    async def _watch_when_served(self, gvk: GroupVersionKind) -> None:
        while True:
            await self._clock.sleep(_ABSENT_SECONDS)
            try:
                await self._clients.get_informer(gvk)
            except KonvergeError as error:
                _log.debug("%s cannot be watched yet: %s", gvk, error)
            else:
                return

    async def _warm_up(self, kinds: Sequence[OwnerKind]) -> None:
        looked_at: set[ReadingOwner] = set()
        while True:
            for kind in kinds:
                await self._warm_up_owners(kind, looked_at)
            await self._clock.sleep(_WARM_SECONDS)

    async def _warm_up_owners(self, kind: OwnerKind, looked_at: set[ReadingOwner]) -> None:
        if kind.kinds_of is None:
            return
        store = self._informers.running[kind.gvk].store
        fresh = (meta.key for meta in store.iter_metadata() if ReadingOwner(kind.gvk, meta.key) not in looked_at)
        for key in list(itertools.islice(fresh, max(0, _WARM_OWNERS - len(looked_at)))):
            looked_at.add(ReadingOwner(kind.gvk, key))
            owner = store.get(key)
            for gvk in () if owner is None else kind.kinds_of(owner):
                if gvk not in self._warm:
                    self._warm.add(gvk)
                    await self._warm_up_kind(gvk)

    async def _warm_up_kind(self, gvk: GroupVersionKind) -> None:
        try:
            await self._clients.get_informer(gvk)
        except KonvergeError as error:
            _log.debug("%s cannot be read ahead: %s", gvk, error)  # a pass that needs it will say so

    async def _stop_unread_periodically(self) -> None:
        unread: set[GroupVersionKind] = set()
        while True:
            await self._clock.sleep(_SWEEP_SECONDS)
            read = self._read_tracker.list_kinds()
            running = self._informers.running
            found = {
                gvk
                for gvk in running
                if not (gvk in read or gvk in self._warm or self._event_router.is_always_watched(gvk))
            }
            for gvk in found & unread:
                if gvk in self._read_tracker.list_kinds():
                    continue  # it has come to be read while another one was stopped
                _log.debug("nobody reads %s any more: its watch ends", gvk)
                self._event_router.close_kind(gvk)
                await self._informers.stop(gvk)
            unread = found
