"""Requests for kinds instead of paths, and the explanation of responses with status 404."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from konverge._internal.client.rest_mapper import RestMapper
from konverge._internal.client.sender import Sender, decode_object
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.errors import ApiError, ConnectionFailedError, KindNotServedError, NotFoundError

__all__ = ["RestClient"]


@dataclass(frozen=True, slots=True)
class RestClient:
    """The access to one server by kind instead of path.

    Args:
        sender: The sender of the requests.
        mapper: The mapper from kinds to paths.
    """

    sender: Sender
    mapper: RestMapper

    def with_sender(self, sender: Sender) -> RestClient:
        """Return a client for the same server with another sender and the same discovery cache."""
        return RestClient(sender, self.mapper.with_sender(sender))

    def clone(self, sender: Sender) -> RestClient:
        """Return a client for the same server with another sender; nothing is shared."""
        return RestClient(sender, self.mapper.clone(sender))

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the REST mapping of the kind."""
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
        """Send a request for one object; return the decoded response and its status code."""
        mapping = await self.mapping(gvk)
        path = mapping.build_path(key, subresource=subresource)
        async with self.explain_not_found(mapping, subresource):
            response = await self.sender.send(method, path, query=query, headers=headers, body=body)
        return self.sender.texts.remember_object(decode_object(response, method, path)), response.status

    @asynccontextmanager
    async def explain_not_found(self, mapping: RestMapping, subresource: str = "") -> AsyncIterator[None]:
        """Turn a 404 within the block into an error for what is missing: the object, its subresource, or the kind."""
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
            raise KindNotServedError(f"the server no longer serves {mapping.gvk}: {error.message}") from error

    async def _explain_missing_subresource(
        self, mapping: RestMapping, subresource: str, error: NotFoundError
    ) -> ApiError | KindNotServedError:
        """Explain a 404 of a subresource.

        For a custom resource without that subresource, the server responds as if the object did not exist. So discovery
        decides: otherwise the caller would consider an object deleted whose definition is only wrong.
        """
        gvk = mapping.gvk
        if error.details.get("name") and subresource in mapping.subresources:
            return error
        try:
            current = await self.mapper.find_current(gvk)
        except (ApiError, ConnectionFailedError):
            return error
        if current is None:
            return KindNotServedError(f"the server no longer serves {gvk}: {error.message}")
        if subresource in current.subresources:
            return error
        names = f"it has {', '.join(sorted(current.subresources))}" if current.subresources else "it has none"
        return ApiError(
            f'{gvk} has no subresource "{subresource}" ({names})', reason=error.reason, code=404, details=error.details
        )
