"""What the steps of a pipeline read the cluster with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.selectors import LabelSelector

__all__ = ["Reader"]


class Reader(Protocol):
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
