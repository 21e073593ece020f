"""The interfaces with which the steps of a pipeline read the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge._internal.kube.selectors import LabelSelector
from konverge.errors import KindNotServedError, KindUnreachableError
from konverge_box._internal.steps.labels import OWNER_UID

__all__ = ["MappingReader", "ObjectReader", "list_owned_objects"]


class ObjectReader(Protocol):
    """A reader of objects. A later change of a read object queues the custom resource.

    `konverge.runtime.CachedClient` implements it.
    """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Return one object.

        Raises:
            konverge.errors.NotFoundError: The object does not exist.
        """

    # This method is the last one: below it, `list` in annotations would refer to the method.
    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        """Return the objects with these labels, from one namespace or from every watched one."""


class MappingReader(ObjectReader, Protocol):
    """A reader that knows which kinds are namespaced. `konverge.runtime.CachedClient` implements it."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the URL path of the kind, and whether it is namespaced.

        Raises:
            konverge.errors.KindNotServedError: The kind is not served.
        """


async def list_owned_objects(gvk: GroupVersionKind, owner: Object, reader: ObjectReader) -> list[Object]:
    """List all objects of the kind with the owner's label; return nothing for a kind that is not served.

    Raises:
        konverge.errors.KindUnreachableError: The kind is served, but its objects cannot be read now.
        konverge.errors.KonvergeError: The cluster could not be read.
    """
    try:
        return await reader.list(gvk, labels={OWNER_UID: str(owner["metadata"]["uid"])})
    except KindUnreachableError:
        raise
    except KindNotServedError:
        return []
