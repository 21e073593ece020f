"""The informers of a process: one for each kind, started on first use and shared by all readers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from types import MappingProxyType, TracebackType
from typing import Self

from konverge._internal.cache.indexes import IndexFunction
from konverge._internal.cache.informer import Informer
from konverge._internal.cache.options import CacheOptions
from konverge._internal.cache.reflector_driver import ChangeCallback
from konverge._internal.cache.server_state import ServerState
from konverge._internal.client.client import Client
from konverge._internal.kube import GroupVersionKind
from konverge._internal.kube.metadata import ObjectMeta
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy

__all__ = ["InformerFactory"]

_logger = logging.getLogger("konverge.cache")


class InformerFactory:
    """The informers of one cluster; an async context manager. Leaving the block stops them all.

    Args:
        client: The client that lists and watches.
        namespaces: The namespaces to cover, for namespaced kinds; empty for all.
        options: The cache options of single kinds; their namespaces take precedence over ``namespaces``.
        keep: The predicate for objects to cache (see `konverge.cache.Store`); None for all.
        start_timeout_seconds: The time for which a reader waits for the first list of a kind.
        clock: The source of time.
        entropy: The source of jitter.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Iterable[str] = (),
        options: Mapping[GroupVersionKind, CacheOptions] | None = None,
        keep: Callable[[GroupVersionKind, ObjectMeta], bool] | None = None,
        start_timeout_seconds: float = 30.0,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)
        self._options = dict(options or {})
        self._indexes: dict[GroupVersionKind, dict[str, IndexFunction]] = {}
        self._keep = keep
        self._server = ServerState()
        self._start_timeout_seconds = start_timeout_seconds
        self._clock = clock or SystemClock()
        self._entropy = entropy or SystemEntropy()
        self._informers: dict[GroupVersionKind, Informer] = {}
        self._tasks: dict[GroupVersionKind, asyncio.Task[None]] = {}
        self._callbacks: list[ChangeCallback] = []
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        if error is None or isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, traceback)
        else:
            # The group would wrap the error, and callers that catch it by its class would miss it.
            await self._group.__aexit__(None, None, None)

    @property
    def running(self) -> Mapping[GroupVersionKind, Informer]:
        """The informers that were started, synced or not."""
        return MappingProxyType(self._informers)

    async def get_informer(self, gvk: GroupVersionKind) -> Informer:
        """Return the synced informer of that kind; the first call for a kind starts it.

        If a list fails, the informer retries it in the background, and at once at the next call.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind (now).
            konverge.errors.ApiError: The server rejects the list.
            konverge.errors.ConnectionFailedError: The informer did not sync in time.
        """
        informer = self._informers.get(gvk)
        if informer is None:
            mapping = await self._client.mapping(gvk)
            # Another reader may have started it meanwhile.
            informer = self._informers.get(gvk) or self._start(gvk, namespaced=mapping.namespaced)
        await informer.wait_until_synced(self._start_timeout_seconds)
        return informer

    def add_index(self, gvk: GroupVersionKind, name: str, values_of: IndexFunction) -> None:
        """Add an index to a kind (`Informer.list_keys_by_index`), whether its informer is started or not.

        Args:
            gvk: The kind.
            name: The name of the index; an index of that name is replaced.
            values_of: The function that returns the values of an object (`Informer.add_index`).
        """
        self._indexes.setdefault(gvk, {})[name] = values_of
        informer = self._informers.get(gvk)
        if informer is not None:
            informer.add_index(name, values_of)

    def subscribe(self, callback: ChangeCallback) -> Callable[[], None]:
        """Call the function for each later change of any kind; changes of one object come in order.

        A deletion that happened while no watch was open is reported with the last cached state (see `StoreChange`).

        The callback runs before any other code, also within `Informer.record_write` for an own write; it must neither
        block nor raise. Objects that are cached already are not reported.

        Returns:
            A function that ends the subscription.
        """
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def stop(self, gvk: GroupVersionKind) -> None:
        """Stop the informer of a kind, if any, and forget its objects without reporting changes."""
        self._informers.pop(gvk, None)
        task = self._tasks.pop(gvk, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _start(self, gvk: GroupVersionKind, *, namespaced: bool) -> Informer:
        keep = self._keep
        options = self._options.get(gvk, CacheOptions())
        informer = Informer(
            self._client,
            gvk,
            namespaces=(options.namespaces or self._namespaces) if namespaced else (),
            options=options,
            keep=None if keep is None else lambda meta: keep(gvk, meta),
            publish=self._publish,
            server=self._server,
            start_timeout_seconds=self._start_timeout_seconds,
            clock=self._clock,
            entropy=self._entropy,
        )
        for name, values_of in self._indexes.get(gvk, {}).items():
            informer.add_index(name, values_of)
        self._informers[gvk] = informer
        # Not in the context of the reconcile that first needs the kind: the informer outlives that reconcile.
        self._tasks[gvk] = self._group.create_task(informer.run(), name=f"informer {gvk}", context=Context())
        return informer

    def _publish(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        for callback in tuple(self._callbacks):
            try:
                callback(gvk, old, new)
            except Exception:  # an error of one subscriber must not affect the others, nor end the watch
                _logger.exception("%s: a subscriber raised an error for a change", gvk)
