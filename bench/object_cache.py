"""A client of the engine with a cache, for benches of reconciles without changes."""

from __future__ import annotations

import msgspec

from konverge.client import ApplyResponse, Client
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping

__all__ = ["ObjectCache"]


class ObjectCache:
    """Objects as a cache stores them: bytes by key, decoded at each read. Applies reach the cluster and the cache.

    Args:
        client: The client of the cluster.

    Attributes:
        texts: The encoded objects.
        writes: The number of applies.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.texts: dict[tuple[GroupVersionKind, ObjectKey], bytes] = {}
        self.writes = 0

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the mapping of the kind."""
        return await self._client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Return the cached object of that key."""
        text = self.texts.get((gvk, key))
        if text is None:
            raise NotFoundError(f"{key} not found")
        found: Object = msgspec.json.decode(text)
        return found

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        """Apply the object to the cluster, and cache the response."""
        self.writes += 1
        applied = await self._client.apply(obj, field_manager=field_manager)
        self.texts[GroupVersionKind.of(obj), ObjectKey.of(obj)] = msgspec.json.encode(applied.object)
        return applied

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Fail: the benches do not call this method."""
        raise AssertionError("nothing is updated here")

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: str = "Background") -> None:
        """Fail: the benches do not call this method."""
        raise AssertionError("nothing is deleted here")
