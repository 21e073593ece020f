"""Requests about kinds: where a kind is served, and what it means when something is not there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from konverge.client.rest_mapper import RestMapper
from konverge.client.sender import Sender, decode_object
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping

__all__ = ["RestClient"]


@dataclass(frozen=True, slots=True)
class RestClient:
    """One server, asked about kinds instead of paths.

    Args:
        sender: Sends.
        mapper: Knows the paths.
    """

    sender: Sender
    mapper: RestMapper

    def with_sender(self, sender: Sender) -> RestClient:
        """The same server and the same knowledge of it, through another sender."""
        return RestClient(sender, self.mapper.with_sender(sender))

    def clone(self, sender: Sender) -> RestClient:
        """The same server through another sender; nothing is shared."""
        return RestClient(sender, self.mapper.clone(sender))

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Where the kind is served and whether it is namespaced."""
        return await self.mapper.mapping(gvk)

    async def request_object(
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
        path = mapping.build_path(key, subresource=subresource)
        async with self.explain_not_found(mapping, subresource):
            answer = await self.sender.send(method, path, query=query, headers=headers, body=body)
        return self.sender.texts.remember_object(decode_object(answer, method, path)), answer.status

    @asynccontextmanager
    async def explain_not_found(self, mapping: RestMapping, subresource: str = "") -> AsyncIterator[None]:
        """Tell what it is that a 404 says is not there: the object, its subresource, or the kind."""
        try:
            yield
        except NotFoundError as error:
            if subresource:
                absence = await self._explain_missing_subresource(mapping, subresource, error)
                if absence is error:
                    raise
                raise absence from error
            if error.details.get("name"):
                raise
            self.mapper.forget(mapping.gvk)
            raise KindNotServedError(f"the server does not serve {mapping.gvk} any more: {error.message}") from error

    async def _explain_missing_subresource(
        self, mapping: RestMapping, subresource: str, error: NotFoundError
    ) -> ApiError | KindNotServedError:
        """What a 404 of a subresource means.

        A custom resource that has no such subresource is answered as one that does not exist. So discovery has the last
        word: a caller that reads "gone" would give up what is only declared wrongly.
        """
        gvk = mapping.gvk
        if error.details.get("name") and subresource in mapping.subresources:
            return error
        try:
            current = await self.mapper.find_current(gvk)
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
