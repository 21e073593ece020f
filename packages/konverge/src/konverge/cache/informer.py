"""One kind in memory: what its collections, one or one for each namespace, are to a reader and a writer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from konverge.cache.indexes import Index, IndexFunction, find_by_label_index
from konverge.cache.informer_statistics import InformerStatistics
from konverge.cache.options import CacheOptions
from konverge.cache.reflector_driver import ChangeCallback, ReflectorDriver
from konverge.cache.server_state import ServerState
from konverge.cache.store import Store
from konverge.cache.store_view import StoreView
from konverge.client.client import Client
from konverge.clock import Clock, Entropy
from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.metadata import ObjectMeta
from konverge.kube.selectors import LabelSelector

__all__ = ["Informer"]

_EVERYTHING = LabelSelector()


class Informer:
    """One kind in memory: reads are answered from it, changes are told.

    What it gives is the caller's own: each read decodes the object anew, so that nobody can change what others read,
    and nothing need be copied or frozen. Metadata (`ObjectMeta`) is shared and cannot be changed.

    What it holds, it holds as `CacheOptions` say. Objects that the selectors leave out are to it as if they did not
    exist, own writes included; of objects in namespaces that it does not cover, and of those that `keep` has dropped,
    it knows that it does not know.

    Args:
        client: Where to read from.
        gvk: The kind.
        namespaces: Those that are covered, with a list and a watch each; empty for all.
        options: Which objects are held, and how much of each; its own namespaces do not count here.
        keep: Which of them to hold (see `Store`); None for all.
        publish: Hears of each change that a reader sees, own writes included; those of one object in order.
        server: What the collections of the server find out for each other; nothing is shared when not given.
        start_timeout_seconds: How long `widen` waits.
        clock: Measures and waits.
        entropy: Draws the jitter of pauses.
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
            MappingProxyType({namespace: each.store for namespace, each in self._drivers.items()})
        )

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind."""
        return self._gvk

    @property
    def store(self) -> StoreView:
        """What is held: for lookups that need no waiting."""
        return self._store_view

    @property
    def statistics(self) -> InformerStatistics:
        """What its upkeep has cost so far."""
        return self._statistics

    @property
    def synced(self) -> bool:
        """Tell whether reads are answered: all was read as a whole, and told, and the kind is still served."""
        return all(each.synced for each in self._drivers.values())

    @property
    def last_error(self) -> KonvergeError | None:
        """Why the server's changes do not arrive at the moment; None when they do."""
        return next((each.last_error for each in self._drivers.values() if each.last_error is not None), None)

    @property
    def age_seconds(self) -> float | None:
        """How long ago the server last proved that what is held is up to date; None before the first list."""
        return _find_max_age(each.age_seconds for each in self._drivers.values())

    @property
    def list_age_seconds(self) -> float | None:
        """How long ago the last whole list was asked for; None before the first."""
        return _find_max_age(each.list_age_seconds for each in self._drivers.values())

    @property
    def dropped(self) -> int:
        """How many objects exist that are not held, since `keep` refuses them."""
        return sum(each.store.dropped for each in self._drivers.values())

    @property
    def unconfirmed_writes(self) -> int:
        """How many own writes the watch has not shown yet: creates and changes; up to 10,000 in each namespace."""
        return sum(len(each.own_writes) for each in self._drivers.values())

    @property
    def own_write_lag_seconds(self) -> float:
        """How long ago the oldest of them was answered; 0 for none."""
        answered = (each.own_writes.oldest_at for each in self._drivers.values())
        oldest = min((at for at in answered if at is not None), default=None)
        return 0.0 if oldest is None else self._clock.monotonic() - oldest

    async def run(self) -> None:
        """Keep it up to date until cancelled; failures are retried, with growing pauses, for ever."""
        async with asyncio.TaskGroup() as running:
            for namespace, each in self._drivers.items():
                running.create_task(each.run(), name=f"collection {self._gvk} {namespace}".rstrip())

    async def wait_until_synced(self, timeout_seconds: float) -> None:
        """Wait until reads are answered.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind, by a fresh answer.
            konverge.errors.ApiError: The server refuses to list it, and waiting would not change that.
            konverge.errors.ConnectionFailedError: The deadline has passed, or the server cannot be trusted.
        """
        deadline = self._clock.monotonic() + timeout_seconds
        for each in self._drivers.values():
            await each.wait_until_synced(max(0.0, deadline - self._clock.monotonic()))

    async def read(self, key: ObjectKey) -> Object:
        """One object, for the caller to change: from memory, or from the server where memory does not know.

        That is: if it is in a namespace that is not covered, if a write of it is in doubt, or if it exists and is not
        held (then it is from now on, when `keep` says so). Of a kind that is limited by selectors, an object outside of
        them is not found, though it may exist: whoever needs it asks the server. Of a kind of which only metadata is
        held, what is read has apiVersion, kind and metadata and nothing else; it is nothing to write back.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """
        found = self._find_driver(key)
        if found is None:
            return await self._client.get(self._gvk, key, live=True)
        return await found.read(key)

    def add_index(self, name: str, values_of: IndexFunction) -> None:
        """Find objects by these values from now on; what is held already is put in at once.

        Args:
            name: What the index is called; one of that name is replaced.
            values_of: Says what an object is found by. It gets what a read gives, and must be quick: it runs on every
                change. An object on which it fails is found by nothing.
        """
        index = Index(self._gvk, name, values_of)
        for each in self._drivers.values():
            each.store.populate_index(index)
        self._indexes[name] = index

    def list_keys_by_index(self, name: str, value: str) -> list[ObjectKey]:
        """The keys of the held objects that the index has under that value, sorted.

        Raises:
            KeyError: There is no such index.
        """
        index = self._indexes.get(name)
        if index is None:
            raise KeyError(
                f"{self._gvk} has no index {name!r}; there are: {', '.join(sorted(self._indexes)) or 'none'}"
            )
        return index.find_keys(value)

    def list(self, *, namespace: str = "", labels: LabelSelector = _EVERYTHING) -> list[Object]:
        """All objects that are held and match, sorted by key, each for the caller to change.

        It is complete only where `keep` says yes to all that match (see `widen`), and in namespaces that are covered.

        Args:
            namespace: Narrows it to one; empty for all.
            labels: Narrows it by labels.
        """
        indexed = find_by_label_index(self._indexes, labels)
        candidates = (
            self._store_view.iter_metadata() if indexed is None else map(self._store_view.get_metadata, indexed)
        )
        found = [
            meta.key
            for meta in candidates
            if meta is not None and (not namespace or meta.namespace == namespace) and labels.matches(meta.labels)
        ]
        return [obj for key in sorted(found) if (obj := self._store_view.get(key)) is not None]

    def record_write(self, obj: Mapping[str, Any]) -> None:
        """The answer to an own write: reads see it from now on.

        Subscribers hear of it before this returns, and not again when the watch brings it.
        """
        found = self._find_driver(ObjectKey.of(obj))
        if found is not None:
            found.record_write(obj)

    def record_delete(self, key: ObjectKey, uid: str) -> None:
        """An own delete after which nothing holds the object any more: reads do not see it from now on."""
        found = self._find_driver(key)
        if found is not None:
            found.record_delete(key, uid)

    def mark_uncertain(self, key: ObjectKey) -> None:
        """A write of ours has an outcome that nobody knows (its answer was lost): the next read asks the server.

        What that answers is held and told like an own write. A known answer to a later write ends the doubt. Lists and
        indexes go by what is held.
        """
        found = self._find_driver(key)
        if found is not None:
            found.mark_uncertain(key)

    async def widen(self) -> None:
        """`keep` says yes to more than before: returns when all of that is held.

        Lists again if anything had been dropped; calls that come together share a list. Readers see what there was
        meanwhile, and what comes is told as added.

        Raises:
            konverge.errors.KonvergeError: As for `ready`.
        """
        numbers = {each: each.widen() for each in self._drivers.values()}
        deadline = self._clock.monotonic() + self._start_timeout_seconds
        for each, number in numbers.items():
            await each.wait_for_list(number, max(0.0, deadline - self._clock.monotonic()))

    async def load_dropped(self, *, namespace: str = "", labels: LabelSelector) -> None:
        """`keep` says yes to these objects too: returns when they are held; asks the server for no others.

        Nobody is told of those that had been dropped before: nothing has happened to them.

        Args:
            namespace: Narrows it to one; empty for all.
            labels: Narrows it by labels.

        Raises:
            konverge.errors.KonvergeError: The server refuses, or cannot be reached.
        """
        for covered, each in self._drivers.items():
            if covered and namespace and covered != namespace:
                continue
            await each.load_dropped(namespace or covered, labels)

    def evict_rejected(self) -> None:
        """`keep` says yes to less than before: drop what it refuses. Nobody is told; a read asks the server again."""
        for each in self._drivers.values():
            each.evict_rejected()

    def _find_driver(self, key: ObjectKey) -> ReflectorDriver | None:
        return self._drivers.get("") or self._drivers.get(key.namespace)


def _find_max_age(ages: Iterable[float | None]) -> float | None:
    """The highest age; None while there is none for one of them."""
    oldest = 0.0
    for age in ages:
        if age is None:
            return None
        oldest = max(oldest, age)
    return oldest
