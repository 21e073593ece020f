"""The cache of one kind for readers and writers: one collection, or one for each namespace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from konverge._internal.cache.indexes import Index, IndexFunction, find_by_label_index
from konverge._internal.cache.informer_statistics import InformerStatistics
from konverge._internal.cache.options import CacheOptions
from konverge._internal.cache.reflector_driver import ChangeCallback, ReflectorDriver
from konverge._internal.cache.server_state import ServerState
from konverge._internal.cache.store import Store
from konverge._internal.cache.store_view import StoreView
from konverge._internal.client.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.kube.selectors import LabelSelector
from konverge.clock import Clock, Entropy
from konverge.errors import KonvergeError

__all__ = ["Informer"]

_EVERYTHING = LabelSelector()


class Informer:
    """The cache of one kind: it serves reads from memory and reports changes.

    The caller owns the objects that it receives: each read decodes the object anew, so that no reader affects another.
    Metadata (`ObjectMeta`) is shared and immutable.

    `CacheOptions` define the contents. An object that the selectors do not match does not exist for the informer, even
    after an own write. For namespaces that are not covered, and for objects that `keep` dropped, the informer knows
    that its contents are incomplete, and reads from the server.

    Args:
        client: The client that lists and watches.
        gvk: The kind.
        namespaces: The namespaces to cover, with a list and a watch each; empty for all.
        options: The objects to cache, and how much of each; its ``namespaces`` are ignored here.
        keep: The predicate for objects to cache (see `Store`); None for all.
        publish: The callback for each change that readers see, own writes included; changes of one object come in
            order.
        server: The state that all collections of the server share; by default nothing is shared.
        start_timeout_seconds: The time for which `widen` waits.
        clock: The source of time.
        entropy: The source of jitter.
    """

    def __init__(
        self,
        client: Client,
        gvk: GroupVersionKind,
        *,
        namespaces: Sequence[str] = (),
        options: CacheOptions | None = None,
        keep: Callable[[ObjectMeta], bool] | None = None,
        publish: ChangeCallback,
        server: ServerState | None = None,
        start_timeout_seconds: float = 30.0,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        options = options or CacheOptions()
        server = server or ServerState()
        self._client = client
        self._gvk = gvk
        self._start_timeout_seconds = start_timeout_seconds
        self._clock = clock
        self._statistics = InformerStatistics()
        self._indexes: dict[str, Index] = {}
        self._drivers = {
            namespace: ReflectorDriver(
                client,
                gvk,
                namespace=namespace,
                options=options,
                store=Store(gvk, keep, options=options, indexes=self._indexes, statistics=self._statistics),
                publish=publish,
                statistics=self._statistics,
                server=server,
                clock=clock,
                entropy=entropy,
            )
            for namespace in dict.fromkeys(namespaces or ("",))
        }
        self._store_view = StoreView(
            MappingProxyType({namespace: driver.store for namespace, driver in self._drivers.items()})
        )

    @property
    def gvk(self) -> GroupVersionKind:
        """The group, version and kind of the objects."""
        return self._gvk

    @property
    def store(self) -> StoreView:
        """The view of the cached objects, for lookups without waiting."""
        return self._store_view

    @property
    def statistics(self) -> InformerStatistics:
        """The counters of its lists and watches."""
        return self._statistics

    @property
    def synced(self) -> bool:
        """True if reads succeed: the first lists are complete and reported, and the kind is still served."""
        return all(driver.synced for driver in self._drivers.values())

    @property
    def last_error(self) -> KonvergeError | None:
        """The error that keeps changes from arriving now; None while they arrive."""
        return next((driver.last_error for driver in self._drivers.values() if driver.last_error is not None), None)

    @property
    def age_seconds(self) -> float | None:
        """The seconds since the server last proved that the cache is up to date; None before the first list."""
        return _find_max_age(driver.age_seconds for driver in self._drivers.values())

    @property
    def list_age_seconds(self) -> float | None:
        """The seconds since the last whole list was requested; None before the first."""
        return _find_max_age(driver.list_age_seconds for driver in self._drivers.values())

    @property
    def dropped(self) -> int:
        """The number of objects that exist but are not cached because `keep` rejects them."""
        return sum(driver.store.dropped for driver in self._drivers.values())

    @property
    def unconfirmed_writes(self) -> int:
        """The number of own creates and updates that the watch has not reported yet; up to 10,000 per namespace."""
        return sum(len(driver.own_writes) for driver in self._drivers.values())

    @property
    def own_write_lag_seconds(self) -> float:
        """The seconds since the response to the oldest unconfirmed write; 0 if there is none."""
        response_times = (driver.own_writes.oldest_at for driver in self._drivers.values())
        oldest = min((time for time in response_times if time is not None), default=None)
        return 0.0 if oldest is None else self._clock.monotonic() - oldest

    async def run(self) -> None:
        """Keep the cache up to date until cancelled; retry failures forever with exponential backoff."""
        async with asyncio.TaskGroup() as running:
            for namespace, driver in self._drivers.items():
                running.create_task(driver.run(), name=f"collection {self._gvk} {namespace}".rstrip())

    async def wait_until_synced(self, timeout_seconds: float) -> None:
        """Wait until reads succeed.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind, by a new response.
            konverge.errors.ApiError: The server rejects the list, and waiting would not change that.
            konverge.errors.ConnectionFailedError: The deadline has passed, or the server cannot be trusted.
        """
        deadline = self._clock.monotonic() + timeout_seconds
        for driver in self._drivers.values():
            await driver.wait_until_synced(max(0.0, deadline - self._clock.monotonic()))

    async def read(self, key: ObjectKey) -> Object:
        """Return one object, which the caller may change: from memory, or from the server if memory is incomplete.

        The server is read if the namespace is not covered, if the result of an own write is unknown, or if the object
        exists but is not cached. In the last case the object is cached if `keep` accepts it.

        An object that the selectors do not match is not found, although it may exist: read it with the client instead.
        For a kind that is cached with its metadata only, the result has apiVersion, kind and metadata; do not write it
        back.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
        """
        driver = self._find_driver(key)
        if driver is None:
            return await self._client.get(self._gvk, key, live=True)
        return await driver.read(key)

    def add_index(self, name: str, values_of: IndexFunction) -> None:
        """Add an index; it includes the objects that are cached already.

        Args:
            name: The name of the index; an index of that name is replaced.
            values_of: The function that returns the values of an object. It receives the same object as a reader, and
                must be fast: it runs at every change. If it raises an error, the object has no values.
        """
        index = Index(self._gvk, name, values_of)
        for driver in self._drivers.values():
            driver.store.populate_index(index)
        self._indexes[name] = index

    def list_keys_by_index(self, name: str, value: str) -> list[ObjectKey]:
        """Return the keys of the cached objects that the index has under that value, sorted.

        Raises:
            KeyError: The index does not exist.
        """
        index = self._indexes.get(name)
        if index is None:
            raise KeyError(
                f"{self._gvk}: the index {name!r} does not exist: expected one of: "
                f"{', '.join(sorted(self._indexes)) or 'none'}; add it with add_index"
            )
        return index.find_keys(value)

    def list(self, *, namespace: str = "", labels: LabelSelector = _EVERYTHING) -> list[Object]:
        """Return all cached objects that match, sorted by key; the caller may change them.

        The list is complete only if `keep` accepts all matching objects (see `widen`), and in covered namespaces.

        Args:
            namespace: The namespace to select; empty for all.
            labels: The labels to select.
        """
        indexed = find_by_label_index(self._indexes, labels)
        candidates = (
            self._store_view.iter_metadata() if indexed is None else map(self._store_view.get_metadata, indexed)
        )
        keys = [
            meta.key
            for meta in candidates
            if meta is not None and (not namespace or meta.namespace == namespace) and labels.matches(meta.labels)
        ]
        return [obj for key in sorted(keys) if (obj := self._store_view.get(key)) is not None]

    def record_write(self, obj: Mapping[str, Any]) -> None:
        """Record the response to an own write: later reads include it.

        Subscribers are called before this returns, and not again at the watch event.
        """
        driver = self._find_driver(ObjectKey.of(obj))
        if driver is not None:
            driver.record_write(obj)

    def record_delete(self, key: ObjectKey, uid: str) -> None:
        """Record an own delete after which no finalizer is left: later reads do not find the object."""
        driver = self._find_driver(key)
        if driver is not None:
            driver.record_delete(key, uid)

    def mark_uncertain(self, key: ObjectKey) -> None:
        """Record that the result of an own write is unknown because its response was lost.

        The next read goes to the server. Its response is cached and reported like an own write. The response to a later
        write also ends the doubt. Lists and indexes use the cached object meanwhile.
        """
        driver = self._find_driver(key)
        if driver is not None:
            driver.mark_uncertain(key)

    async def widen(self) -> None:
        """Wait until all objects are cached that `keep` accepts now, after it began to accept more.

        The informer relists if any object was dropped; concurrent calls share a list. Readers see the old contents
        meanwhile. New contents are reported as added.

        Raises:
            konverge.errors.KonvergeError: The same errors as for `wait_until_synced`.
        """
        numbers = {driver: driver.widen() for driver in self._drivers.values()}
        deadline = self._clock.monotonic() + self._start_timeout_seconds
        for driver, number in numbers.items():
            await driver.wait_for_list(number, max(0.0, deadline - self._clock.monotonic()))

    async def load_dropped(self, *, namespace: str = "", labels: LabelSelector) -> None:
        """Cache the matching objects, which `keep` has begun to accept; request no others from the server.

        Objects that were dropped before are not reported as changes: they did not change.

        Args:
            namespace: The namespace to select; empty for all.
            labels: The labels to select.

        Raises:
            konverge.errors.KonvergeError: The server rejects the list, or is unreachable.
        """
        for covered, driver in self._drivers.items():
            if covered and namespace and covered != namespace:
                continue
            await driver.load_dropped(namespace or covered, labels)

    def evict_rejected(self) -> None:
        """Drop the objects that `keep` now rejects, without reporting changes; a read goes to the server again."""
        for driver in self._drivers.values():
            driver.evict_rejected()

    def _find_driver(self, key: ObjectKey) -> ReflectorDriver | None:
        return self._drivers.get("") or self._drivers.get(key.namespace)


def _find_max_age(ages: Iterable[float | None]) -> float | None:
    """Return the highest age; None if any age is None."""
    oldest = 0.0
    for age in ages:
        if age is None:
            return None
        oldest = max(oldest, age)
    return oldest
