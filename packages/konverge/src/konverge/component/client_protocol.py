"""What the engine needs of a cluster: five verbs.

`konverge.client.Client` satisfies it by sending requests, `konverge.runtime`'s by reading from shared caches, and a
script or a kopf handler may bring its own.
"""

from __future__ import annotations

from typing import Protocol

from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping

__all__ = ["ApplyResult", "ComponentClient"]


class ApplyResult(Protocol):
    """The answer to a server-side apply."""

    @property
    def object(self) -> Object:
        """The object as the server stored it."""

    @property
    def created(self) -> bool:
        """Tell whether it did not exist before (HTTP 201)."""


class ComponentClient(Protocol):
    """Five verbs; each raises `konverge.errors.ApiError` or `ConnectionFailedError` when it fails."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served and whether it is namespaced.

        Raises:
            konverge.errors.KindNotServedError: It is not served.
        """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Read one object; the caller may change what it gets.

        Args:
            gvk: The kind.
            key: The object.
            live: Ask the server, even where a cache could answer.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResult:
        """Server-side apply with force."""

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion.

        Raises:
            konverge.errors.ConflictError: It has changed since it was read.
        """

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> Object | None:
        """Delete the object in the background, if it still is the one of that UID.

        Returns:
            The object as it is now, when something (a finalizer, its grace period) still holds it; None when it is
            gone.

        Raises:
            konverge.errors.NotFoundError: There is none.
            konverge.errors.ConflictError: Another object has the name now.
        """
