"""What is held of one kind, for lookups that need no waiting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from konverge.cache.store import Store
from konverge.kube import Object, ObjectKey
from konverge.kube.metadata import ObjectMeta

__all__ = ["StoreView"]


class StoreView:
    """The objects of a kind, whether they come from one collection or from one for each namespace.

    Args:
        stores: By namespace; the one of all namespaces, or of a kind without any, by the empty string.
    """

    def __init__(self, stores: Mapping[str, Store]) -> None:
        self._stores = stores

    def __len__(self) -> int:
        return sum(map(len, self._stores.values()))

    def __contains__(self, key: ObjectKey) -> bool:
        store = self.find_store(key)
        return store is not None and key in store

    def find_store(self, key: ObjectKey) -> Store | None:
        """The store that the object would be in; None when its namespace is not covered."""
        return self._stores.get("") or self._stores.get(key.namespace)

    def get(self, key: ObjectKey) -> Object | None:
        """One object, fresh; None when it is absent or was dropped."""
        store = self.find_store(key)
        return None if store is None else store.get(key)

    def get_metadata(self, key: ObjectKey) -> ObjectMeta | None:
        """One object's metadata; None when it is absent or was dropped."""
        store = self.find_store(key)
        return None if store is None else store.get_metadata(key)

    def is_dropped(self, key: ObjectKey) -> bool:
        """Tell whether the object exists but is not held."""
        store = self.find_store(key)
        return store is not None and store.is_dropped(key)

    def iter_metadata(self) -> Iterator[ObjectMeta]:
        """The metadata of all that is held; not to be continued after a change."""
        return chain.from_iterable(store.iter_metadata() for store in self._stores.values())
