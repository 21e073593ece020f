"""A client to whose callers the new versions of kinds are served already."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, RestMapping

__all__ = ["UpgradedClient"]


class UpgradedClient:
    """A client whose mapping of a new version is that of a served version of the same kind.

    A dry run needs the scope of its owner's kind, which is the same in all versions. Everything else is passed on.

    Args:
        client: The client.
        served: The served version of each kind whose new version is not served.
    """

    def __init__(self, client: Client, served: Mapping[GroupVersionKind, GroupVersionKind]) -> None:
        self._client = client
        self._served = served

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the path and scope of a kind."""
        mapping = await self._client.mapping(self._served.get(gvk, gvk))
        return dataclasses.replace(mapping, gvk=gvk)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)
