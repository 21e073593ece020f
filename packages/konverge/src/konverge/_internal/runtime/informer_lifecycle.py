"""The kinds that are cached: their informers start before they are needed, and stop after no owner reads them any more.

The kinds of owners and the watched kinds are cached from the start. Other kinds are cached from the first reconcile
that reads them, or earlier on a replica that stands by, until no owner reads them any more.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Self

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge._internal.runtime.cached_client import CachedClientFactory
from konverge._internal.runtime.event_router import EventRouter
from konverge._internal.runtime.owner_reconciler import OwnerKind
from konverge._internal.runtime.start_steps import StartSteps
from konverge.clock import Clock
from konverge.errors import KindNotServedError, KonvergeError

__all__ = ["InformerLifecycle"]

_log = logging.getLogger("konverge.runtime")

# Interval of the search for informers without readers; an informer that is found twice in a row is stopped.
_SWEEP_SECONDS = 60.0
# Number of owners per kind whose expected reads a standby replica inspects.
_WARM_OWNERS = 100
# Interval of the search for new owners on a standby replica.
_WARM_SECONDS = 5.0
# Interval of the check whether a watched kind that was not served is served now.
_ABSENT_SECONDS = 10.0


class InformerLifecycle:
    """Starts and stops the informers of a process; ``async with`` it. Leaving the block ends its background tasks.

    Args:
        clients: State that the clients of all reconciles share: the informers and the reads.
        routing: Receives the kinds that are watched.
        clock: Source of time.
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
        # An exception of the block propagates unchanged; the task group would wrap it.
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
            watched: Other watched kinds; a kind that is not served starts as soon as it is served.
            steps: Retries failed steps.

        Raises:
            konverge.errors.StartError: A kind cannot be listed within the time limit of the start.
        """
        for gvk in owners:
            await steps.run_step(f"listing {gvk}", partial(self._clients.get_informer, gvk))
        for gvk in dict.fromkeys(watched):
            await steps.run_step(f"listing {gvk}", partial(self._start_watched, gvk))

    def stop_unread(self) -> None:
        """Stop, from now on, the informers of kinds that no owner reads any more."""
        self._start_task(self._stop_unread_periodically(), "stop unread informers")

    def warm_up(self, kinds: Sequence[OwnerKind]) -> None:
        """Start, from now on, the informers that reconciles of such owners are expected to need."""
        self._start_task(self._warm_up(kinds), "warm up")

    def keep_warm(self) -> None:
        """Cache the kinds that are read now, even if no owner reads them any more."""
        self._warm |= self._read_tracker.list_kinds()

    async def _start_watched(self, gvk: GroupVersionKind) -> None:
        try:
            await self._clients.get_informer(gvk)
        except KindNotServedError as error:
            _log.info("%s: not served; its watch starts as soon as it is served: %s", gvk, error)
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
                _log.debug("%s: the watch cannot start yet: %s", gvk, error)
            else:
                return

    async def _warm_up(self, kinds: Sequence[OwnerKind]) -> None:
        inspected: dict[GroupVersionKind, set[ObjectKey]] = {kind.gvk: set() for kind in kinds}
        while True:
            for kind in kinds:
                await self._warm_up_owners(kind, inspected[kind.gvk])
            await self._clock.sleep(_WARM_SECONDS)

    async def _warm_up_owners(self, kind: OwnerKind, inspected: set[ObjectKey]) -> None:
        if kind.kinds_of is None:
            return
        store = self._informers.running[kind.gvk].store
        fresh = (meta.key for meta in store.iter_metadata() if meta.key not in inspected)
        for key in list(itertools.islice(fresh, max(0, _WARM_OWNERS - len(inspected)))):
            inspected.add(key)
            owner = store.get(key)
            for gvk in () if owner is None else kind.kinds_of(owner):
                if gvk not in self._warm:
                    self._warm.add(gvk)
                    await self._warm_up_kind(gvk)

    async def _warm_up_kind(self, gvk: GroupVersionKind) -> None:
        try:
            await self._clients.get_informer(gvk)
        except KonvergeError as error:
            _log.debug(
                "%s: the informer cannot be started in advance: %s", gvk, error
            )  # a reconcile that needs the kind reports the error

    async def _stop_unread_periodically(self) -> None:
        unread: set[GroupVersionKind] = set()
        while True:
            await self._clock.sleep(_SWEEP_SECONDS)
            read = self._read_tracker.list_kinds()
            running = self._informers.running
            candidates = {
                gvk
                for gvk in running
                if not (gvk in read or gvk in self._warm or self._event_router.is_always_watched(gvk))
            }
            for gvk in candidates & unread:
                if gvk in self._read_tracker.list_kinds():
                    continue  # an owner read it while another informer stopped
                _log.debug("%s: no owner reads it any more: its watch stops", gvk)
                self._event_router.close_kind(gvk)
                await self._informers.stop(gvk)
            unread = candidates
