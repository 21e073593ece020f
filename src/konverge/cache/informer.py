"""Keeping one collection in memory: the driver that does what its `Reflector` decides."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeAlias

from konverge.cache.reflector import OpenWatch, ReadPage, Reflector, Wait
from konverge.cache.store import Change, Store
from konverge.client.client import Client
from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    KindNotServedError,
    KonvergeError,
    NotFoundError,
    UntrustedServerError,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey, identity
from konverge.kube.metadata import ObjectMeta

__all__ = ["Callback", "Informer"]

_logger = logging.getLogger(__name__)

# Refusals that waiting does not change. Others pass: too many requests, an expired list, the server's own troubles.
_FINAL_CODES = frozenset({400, 401, 403, 404, 405, 406, 422})

Callback: TypeAlias = Callable[[GroupVersionKind, ObjectMeta | None, ObjectMeta | None], None]
"""Hears of each change: the kind, the metadata before (None: added) and after (None: gone). It must not raise."""


class Informer:
    """One collection in memory: reads are answered from it, changes are told.

    Args:
        client: Where to read from.
        gvk: The kind.
        namespace: The one namespace that counts; empty for all.
        keep: Which objects to hold (see `Store`); None for all.
        publish: Hears of each change that a reader sees, own writes included, in order.
        clock: Measures and waits.
        entropy: Draws the jitter of pauses.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        *,
        namespace: str = "",
        keep: Callable[[ObjectMeta], bool] | None = None,
        publish: Callback,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._client = client
        self._gvk = gvk
        self._namespace = namespace
        self._publish = publish
        self._clock = clock
        self._store = Store(gvk, keep)
        self._reflector = Reflector(gvk, self._store, entropy)
        self._hurried = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind."""
        return self._gvk

    @property
    def store(self) -> Store:
        """What is held: for lookups that need no waiting."""
        return self._store

    @property
    def synced(self) -> bool:
        """Tell whether reads are answered: the collection was read as a whole, and its kind is still served."""
        return self._reflector.synced

    @property
    def problem(self) -> KonvergeError | None:
        """Why the server's changes do not arrive at the moment; None when they do."""
        return self._reflector.problem

    @property
    def age_seconds(self) -> float | None:
        """How long ago the server last proved that what is held is up to date; None before the first list."""
        proven_at = self._reflector.proven_at
        return None if proven_at is None else self._clock.monotonic() - proven_at

    async def run(self) -> None:
        """Keep the collection up to date until cancelled; failures are retried, with growing pauses, for ever."""
        while True:
            step = self._reflector.step(self._clock.monotonic())
            try:
                if isinstance(step, Wait):
                    await self._wait(step.seconds)
                elif isinstance(step, ReadPage):
                    await self._read_page(step)
                else:
                    await self._watch(step)
            except KonvergeError as error:
                self._failed(error)

    async def ready(self, timeout_seconds: float) -> None:
        """Wait until reads are answered.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind, by a fresh answer.
            konverge.errors.ApiError: The server refuses to list it, and waiting would not change that.
            konverge.errors.ConnectionFailedError: The deadline has passed, or the server cannot be trusted.
        """
        if self._reflector.synced:
            return
        self._reflector.hurry(self._clock.monotonic())
        self._hurried.set()
        try:
            async with asyncio.timeout(timeout_seconds):
                while not self._reflector.synced:
                    problem = await self._attempt()
                    if problem is not None and _is_final(problem):
                        raise problem
        except TimeoutError:
            problem = self._reflector.problem
            why = f": {problem}" if problem is not None else ""
            raise ConnectionFailedError(f"{self._gvk} could not be listed within {timeout_seconds:g} s{why}") from None

    async def read(self, key: ObjectKey) -> Object:
        """One object, for the caller to change: from memory, or from the server if it exists and is not held (once).

        Raises:
            konverge.errors.NotFoundError: There is none.
        """
        if not self._covers(key):
            return await self._client.get(self._gvk, key, live=True)
        found = self._store.get(key)
        if found is None and self._store.is_dropped(key):
            found = await self._client.get(self._gvk, key, live=True)
            self._store.record_read(found)  # told to nobody: nothing has happened to the object
        if found is None:
            details = {"kind": self._gvk.kind, "name": key.name}
            raise NotFoundError(f"{identity(self._gvk, key)} not found", details=details)
        return found

    def record_write(self, obj: Mapping[str, Any]) -> None:
        """The answer to an own write: reads see it from now on.

        Subscribers hear of it before this returns, and not again when the watch brings it.
        """
        if self._covers(ObjectKey.of(obj)):
            self._tell(self._store.record_write(obj))

    def record_delete(self, key: ObjectKey, uid: str) -> None:
        """An own delete after which nothing holds the object any more: reads do not see it from now on."""
        if self._covers(key):
            self._tell(self._store.record_delete(key, uid, self._clock.monotonic()))

    def _covers(self, key: ObjectKey) -> bool:
        return not self._namespace or key.namespace == self._namespace

    async def _read_page(self, step: ReadPage) -> None:
        page = await self._client.list_page(
            self._gvk, namespace=self._namespace, limit=step.limit, continue_token=step.continue_token
        )
        with _collector_paused():
            changes = self._reflector.page(page, self._clock.monotonic())
        self._tell_all(changes)

    async def _watch(self, step: OpenWatch) -> None:
        watching = self._client.watch(
            self._gvk,
            namespace=self._namespace,
            resource_version=step.resource_version,
            initial_events=step.initial_events,
            timeout_seconds=step.timeout_seconds,
            idle_timeout_seconds=step.idle_timeout_seconds,
        )
        async with watching as watch:
            self._reflector.opened(self._clock.monotonic())
            while (lines := await watch.next_lines()) is not None:
                with _collector_paused():
                    changes, error = self._reflector.lines(lines, self._clock.monotonic())
                self._tell_all(changes)
                if error is not None:
                    raise error
                watch.idle_timeout_seconds = self._reflector.idle_timeout_seconds
        self._reflector.ended(self._clock.monotonic())

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._hurried.wait()
        except TimeoutError:
            pass
        self._hurried.clear()

    async def _attempt(self) -> KonvergeError | None:
        """Wait until the store is synced or the next attempt has failed; then its failure."""
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await waiting
        finally:
            self._waiting.discard(waiting)
        return self._reflector.problem

    def _wake_waiting(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def _tell(self, change: Change | None) -> None:
        if change is not None:
            self._tell_all([change])

    def _tell_all(self, changes: Iterable[Change]) -> None:
        if self._reflector.synced and self._waiting:
            self._wake_waiting()
        for change in changes:
            self._publish(self._gvk, change.old, change.new)

    def _failed(self, error: KonvergeError) -> None:
        was_healthy = self._reflector.problem is None
        self._reflector.failed(error, self._clock.monotonic())
        if self._reflector.problem is error:
            # The first of a row, and the others for who wants to know: an outage is one line a kind, not one a retry.
            level = logging.WARNING if was_healthy else logging.DEBUG
            _logger.log(level, "%s: its changes do not arrive now: %s", self._gvk, error)
            self._wake_waiting()


def _is_final(problem: KonvergeError) -> bool:
    """Tell whether whoever waits for the collection would wait in vain."""
    if isinstance(problem, ApiError):
        return problem.code in _FINAL_CODES
    return isinstance(problem, KindNotServedError | UntrustedServerError)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from walking the whole cache again and again while many objects are made at once.

    None of them is garbage, and none is in a cycle.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
