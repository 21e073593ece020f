"""The collections that a process needs, each once: started on first need, shared by all who read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context
from types import MappingProxyType, TracebackType
from typing import Self

from konverge.cache.indexes import IndexFunction
from konverge.cache.informer import Informer
from konverge.cache.options import CacheOptions
from konverge.cache.reflector_driver import ChangeCallback
from konverge.cache.server_state import ServerState
from konverge.client.client import Client
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.kube import GroupVersionKind
from konverge.kube.metadata import ObjectMeta

__all__ = ["InformerFactory"]

_logger = logging.getLogger(__name__)


class InformerFactory:
    """A set of informers of one cluster; ``async with`` it. Leaving the block stops them all.

    Args:
        client: Where they read from.
        namespaces: Those that count, for kinds that have namespaces; empty for all.
        options: How a kind is held, where it is not as a whole; its own namespaces stand before those of the set.
        keep: Which objects of a kind to hold (see `konverge.cache.Store`); None for all.
        start_timeout_seconds: How long a reader waits for the first list of a kind.
        clock: Measures and waits.
        entropy: Draws the jitter of pauses.
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
            # Given to the group, it would come out wrapped, and whoever catches it by its class would miss it.
            await self._group.__aexit__(None, None, None)

    @property
    def running(self) -> Mapping[GroupVersionKind, Informer]:
        """Those that have been started, synced or not."""
        return MappingProxyType(self._informers)

    async def get_informer(self, gvk: GroupVersionKind) -> Informer:
        """The informer of that kind, ready to be read; the first who asks starts it.

        A kind that cannot be listed is tried again in the background, and at once when somebody asks again.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind (now).
            konverge.errors.ApiError: The server refuses to list it.
            konverge.errors.ConnectionFailedError: It did not become ready in time.
        """
        informer = self._informers.get(gvk)
        if informer is None:
            mapping = await self._client.mapping(gvk)
            # While that was awaited, another reader may have started it.
            informer = self._informers.get(gvk) or self._start(gvk, namespaced=mapping.namespaced)
        await informer.wait_until_synced(self._start_timeout_seconds)
        return informer

    def add_index(self, gvk: GroupVersionKind, name: str, values_of: IndexFunction) -> None:
        """Let objects of a kind be found by these values (`Informer.by_index`), whether it is watched already or not.

        Args:
            gvk: The kind.
            name: What the index is called; one of that name is replaced.
            values_of: Says what an object is found by (`Informer.add_index`).
        """
        self._indexes.setdefault(gvk, {})[name] = values_of
        informer = self._informers.get(gvk)
        if informer is not None:
            informer.add_index(name, values_of)

    def subscribe(self, callback: ChangeCallback) -> Callable[[], None]:
        """Have each change of each kind told from now on; those of one object in order.

        A deletion that happened while no watch was open is told with the last state that was held (see `Change`).

        The callback runs before anything else does, also within `Informer.record_write` for an own write; it must
        neither wait nor raise. What is already held is not told.

        Returns:
            What ends the subscription.
        """
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    async def stop(self, gvk: GroupVersionKind) -> None:
        """Stop watching a kind, if it is watched, and forget its objects; nobody is told."""
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
        # Not in the context of the pass that happens to need the kind first: it goes on after that pass has ended.
        self._tasks[gvk] = self._group.create_task(informer.run(), name=f"informer {gvk}", context=Context())
        return informer

    def _publish(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        for callback in tuple(self._callbacks):
            try:
                callback(gvk, old, new)
            except Exception:  # one subscriber's mistake must not keep the news from the others, nor end the watch
                _logger.exception("a subscriber failed on a change of %s", gvk)
