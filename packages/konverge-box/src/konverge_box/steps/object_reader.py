"""What the steps of a pipeline read the cluster with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from konverge.errors import KindNotServedError, KindUnreachableError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.kube.selectors import LabelSelector
from konverge_box.steps.labels import OWNER_UID

__all__ = ["MappingReader", "ObjectReader", "list_owned_objects"]


class ObjectReader(Protocol):
    """Reads objects; a later change of what was read wakes the custom resource.

    `konverge.runtime.CachedClient` is one.
    """

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """One object.

        Raises:
            konverge.errors.NotFoundError: There is none.
        """

    # Last: below it, `list` would mean this method in annotations.
    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        """The objects that have these labels, of one namespace or of all that the operator may see."""


class MappingReader(ObjectReader, Protocol):
    """A reader that knows which kinds have namespaces. `konverge.runtime.CachedClient` is one."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served and whether it is namespaced.

        Raises:
            konverge.errors.KindNotServedError: It is not served.
        """


async def list_owned_objects(gvk: GroupVersionKind, owner: Object, reader: ObjectReader) -> list[Object]:
    """All objects of the kind that carry the owner's label; none of a kind that is not served.

    Raises:
        konverge.errors.KindUnreachableError: There may be some, of which nobody can tell now.
        konverge.errors.KonvergeError: The cluster could not be read.
    """
    try:
        return await reader.list(gvk, labels={OWNER_UID: str(owner["metadata"]["uid"])})
    except KindUnreachableError:
        raise
    except KindNotServedError:
        return []
