"""The engine's client on top of what a cache holds, for benches of passes that find nothing to do."""

from __future__ import annotations

import msgspec

from konverge.client import ApplyResponse, Client
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping

__all__ = ["ObjectCache"]


class ObjectCache:
    """Objects as a cache has them: bytes by key, decoded at each read; what is applied goes through and is held.

    Args:
        client: The cluster.

    Attributes:
        texts: The objects.
        writes: How many applies there were.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.texts: dict[tuple[GroupVersionKind, ObjectKey], bytes] = {}
        self.writes = 0

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served."""
        return await self._client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """The object as it is held."""
        text = self.texts.get((gvk, key))
        if text is None:
            raise NotFoundError(f"{key} not found")
        found: Object = msgspec.json.decode(text)
        return found

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        """Apply it to the cluster, and hold the answer."""
        self.writes += 1
        applied = await self._client.apply(obj, field_manager=field_manager)
        self.texts[GroupVersionKind.of(obj), ObjectKey.of(obj)] = msgspec.json.encode(applied.object)
        return applied

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Not called here."""
        raise AssertionError("nothing is updated here")

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> None:
        """Not called here."""
        raise AssertionError("nothing is deleted here")
