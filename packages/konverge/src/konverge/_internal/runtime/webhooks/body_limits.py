"""Limits on the bodies of requests: each is read completely before it is handled, and all together have a limit.

A sender is not authenticated yet. A body therefore has a deadline and a maximum size. When all bodies together are too
large, the largest incomplete one is dropped: reviews of an API server are small, and a client can only exhaust the
memory with large bodies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from konverge.errors import ApiError, BadRequestError, TooManyRequestsError

__all__ = ["BodyLimiter"]


@dataclass(slots=True, eq=False)
class _PendingBody:
    request: web.Request
    length: int = 0
    is_whole: bool = False


class BodyLimiter:
    """The bodies of all present requests.

    Args:
        max_bytes: Maximum size of all together.

    Attributes:
        length: Present size of all together.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pending: dict[_PendingBody, None] = {}
        self.length = 0

    @asynccontextmanager
    async def receive_body(self, request: web.Request, max_bytes: int, seconds: float) -> AsyncIterator[bytes]:
        """Read the whole body; it counts while the block runs.

        Args:
            request: The request.
            max_bytes: Maximum size of this body.
            seconds: Time limit for receiving it.

        Raises:
            ApiError: The body is not JSON, too large, too slow, or incomplete.
            TooManyRequestsError: It is the largest while all together are too large.
        """
        pending = _PendingBody(request)
        self._pending[pending] = None
        try:
            body = await self._read_body(pending, max_bytes, seconds)
            pending.is_whole = True
            yield body
        finally:
            self._discard(pending)

    async def _read_body(self, pending: _PendingBody, max_bytes: int, seconds: float) -> bytes:
        request = pending.request
        if request.content_type != "application/json":
            raise ApiError(
                f"expected Content-Type application/json, found {request.content_type}",
                reason="UnsupportedMediaType",
                code=415,
            )
        too_large = ApiError(f"expected at most {max_bytes} bytes", reason="RequestEntityTooLarge", code=413)
        if (request.content_length or 0) > max_bytes:
            raise too_large
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(seconds):
                async for part in request.content.iter_any():
                    if pending.length + len(part) > max_bytes:
                        raise too_large
                    self._reserve(pending, len(part))
                    parts.append(part)
        except TimeoutError:
            raise ApiError("the body did not arrive in time", reason="Timeout", code=408) from None
        except web.RequestPayloadError as problem:
            raise BadRequestError(f"reading the body failed: {problem}") from None
        return b"".join(parts)

    def _reserve(self, pending: _PendingBody, length: int) -> None:
        pending.length += length
        self.length += length
        while self.length > self._max_bytes:
            longest = max((body for body in self._pending if not body.is_whole), key=lambda body: body.length)
            if longest is pending:
                raise TooManyRequestsError("the bodies of all requests together are too large", retry_after_seconds=1)
            self._discard(longest)
            if longest.request.transport is not None:
                longest.request.transport.abort()  # ends its handler too, which releases its memory

    def _discard(self, pending: _PendingBody) -> None:
        if pending in self._pending:
            del self._pending[pending]
            self.length -= pending.length
