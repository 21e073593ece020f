"""Requests about kinds: where a kind is served, and what it means when something is not there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from konverge.client.rest_mapper import RestMapper
from konverge.client.sending import Sender, decode_object
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping

__all__ = ["Endpoint"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server, asked about kinds instead of paths.

    Args:
        sender: Sends.
        mapper: Knows the paths.
    """

    sender: Sender
    mapper: RestMapper

    def through(self, sender: Sender) -> Endpoint:
        """The same server and the same knowledge of it, through another sender."""
        return Endpoint(sender, self.mapper.through(sender))

    def copied(self, sender: Sender) -> Endpoint:
        """The same server through another sender; nothing is shared."""
        return Endpoint(sender, self.mapper.copied(sender))

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """Where the kind is served and whether it is namespaced."""
        return await self.mapper.mapping(gvk)

    async def on_object(
        self,
        method: str,
        gvk: GroupVersionKind,
        key: ObjectKey,
        *,
        subresource: str = "",
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: Any = None,
    ) -> tuple[Object, int]:
        """Send a request about one object; the decoded answer and its status."""
        mapping = await self.mapping(gvk)
        path = mapping.path(key, subresource=subresource)
        async with self.explaining_absence(mapping, subresource):
            answer = await self.sender.send(method, path, query=query, headers=headers, body=body)
        return self.sender.texts.remember(decode_object(answer, method, path)), answer.status

    @asynccontextmanager
    async def explaining_absence(self, mapping: ResourceMapping, subresource: str = "") -> AsyncIterator[None]:
        """Tell what it is that a 404 says is not there: the object, its subresource, or the kind."""
        try:
            yield
        except NotFoundError as error:
            if subresource:
                absence = await self._absence_of_subresource(mapping, subresource, error)
                if absence is error:
                    raise
                raise absence from error
            if error.details.get("name"):
                raise
            self.mapper.forget(mapping.gvk)
            raise KindNotServedError(f"the server does not serve {mapping.gvk} any more: {error.message}") from error

    async def _absence_of_subresource(
        self, mapping: ResourceMapping, subresource: str, error: NotFoundError
    ) -> ApiError | KindNotServedError:
        """What a 404 of a subresource means.

        A custom resource that has no such subresource is answered as one that does not exist. So discovery has the last
        word: a caller that reads "gone" would give up what is only declared wrongly.
        """
        gvk = mapping.gvk
        if error.details.get("name") and subresource in mapping.subresources:
            return error
        try:
            current = await self.mapper.current(gvk)
        except (ApiError, ConnectionFailedError):
            return error
        if current is None:
            return KindNotServedError(f"the server does not serve {gvk} any more: {error.message}")
        if subresource in current.subresources:
            return error
        has = f"it has {', '.join(sorted(current.subresources))}" if current.subresources else "it has none"
        return ApiError(
            f'{gvk} has no subresource "{subresource}" ({has})', reason=error.reason, code=404, details=error.details
        )
