"""The read-only view of the cached objects of one kind, for lookups without waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from konverge._internal.cache.store import Store
from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta

__all__ = ["StoreView"]


class StoreView:
    """The cached objects of one kind, from one collection or from one for each namespace.

    Args:
        stores: The stores by namespace; the empty string for all namespaces or a cluster-scoped kind.
    """

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores

    def __len__(self) -> int:
        return sum(map(len, self._stores.values()))

    def __contains__(self, key: ObjectKey) -> bool:
        store = self.find_store(key)
        return store is not None and key in store

    def find_store(self, key: ObjectKey) -> Store | None:
        """Return the store for the object; None if its namespace is not covered."""
        return self._stores.get("") or self._stores.get(key.namespace)

    def get(self, key: ObjectKey) -> Object | None:
        """Return a new copy of the object; None if it is absent or was dropped."""
        store = self.find_store(key)
        return None if store is None else store.get(key)

    def get_metadata(self, key: ObjectKey) -> ObjectMeta | None:
        """Return the object's metadata; None if it is absent or was dropped."""
        store = self.find_store(key)
        return None if store is None else store.get_metadata(key)

    def is_dropped(self, key: ObjectKey) -> bool:
        """Return True if the object exists but is not cached."""
        store = self.find_store(key)
        return store is not None and store.is_dropped(key)

    def iter_metadata(self) -> Iterator[ObjectMeta]:
        """Iterate over the metadata of all cached objects; a change of a store invalidates the iterator."""
        return chain.from_iterable(store.iter_metadata() for store in self._stores.values())
