"""The protocol through which the engine uses a cluster: five verbs.

`konverge.client.Client` implements it with requests, the client of `konverge.runtime` with shared caches. A script or a
kopf handler can provide its own implementation.
"""

from __future__ import annotations

from typing import Literal, Protocol

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping

__all__ = ["ApplyResult", "ComponentClient"]


class ApplyResult(Protocol):
    """The response to a server-side apply."""

    @property
    def object(self) -> Object:
        """The object as the server stored it."""

    @property
    def created(self) -> bool:
        """True if the object did not exist before (HTTP 201)."""


class ComponentClient(Protocol):
    """The five verbs; each raises `konverge.errors.ApiError` or `ConnectionFailedError` on failure."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the path and the scope of a kind.

        Raises:
            konverge.errors.KindNotServedError: The server does not serve the kind.
        """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Read one object; the caller may modify the returned value.

        Args:
            gvk: The kind.
            key: The object.
            live: Read from the server even if a cache has the object.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
        """

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResult:
        """Apply the object with server-side apply and force."""

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object (or its ``status``), guarded by its resourceVersion.

        Raises:
            konverge.errors.ConflictError: The object has changed since the read.
        """

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        uid: str,
        propagation: Literal["Background", "Foreground"] = "Background",
    ) -> Object | None:
        """Delete the object if it still has that UID.

        Args:
            gvk: The kind.
            key: The object.
            uid: The UID of the object that was read.
            propagation: The propagation to the objects that it owns; in the foreground, it exists until they are gone.

        Returns:
            The present object if a finalizer or its grace period delays the deletion; None if it is gone.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
            konverge.errors.ConflictError: Another object has the name now.
        """
