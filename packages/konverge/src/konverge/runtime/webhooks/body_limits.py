"""The bodies of requests: each is read whole before anybody works on it, and all together have a bound.

Who sends has shown nothing yet that says who he is. So a body has a deadline and a length, and when all together are
too long, the longest of those that are still coming goes: what an API server asks is short, and whoever wants to fill
the memory has to be long.
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
    """What is held of the bodies of all requests.

    Args:
        most_bytes: How long they may be together.

    Attributes:
        length: How long they are together.
    """

    def __init__(self, most_bytes: int) -> None:
        self._max_bytes = most_bytes
        self._pending: dict[_PendingBody, None] = {}
        self.length = 0

    @asynccontextmanager
    async def receive_body(self, request: web.Request, most_bytes: int, seconds: float) -> AsyncIterator[bytes]:
        """The whole body; it counts for as long as the block runs.

        Args:
            request: Whose body.
            most_bytes: How long this one may be.
            seconds: How long it may take to come.

        Raises:
            ApiError: It is no JSON, too long, too slow, or breaks off.
            TooManyRequestsError: It is the longest of too many.
        """
        held = _PendingBody(request)
        self._pending[held] = None
        try:
            body = await self._read_body(held, most_bytes, seconds)
            held.is_whole = True
            yield body
        finally:
            self._discard(held)

    async def _read_body(self, held: _PendingBody, most_bytes: int, seconds: float) -> bytes:
        request = held.request
        if request.content_type != "application/json":
            raise ApiError(
                f"expected Content-Type application/json, found {request.content_type}",
                reason="UnsupportedMediaType",
                code=415,
            )
        too_large = ApiError(f"expected at most {most_bytes} bytes", reason="RequestEntityTooLarge", code=413)
        if (request.content_length or 0) > most_bytes:
            raise too_large
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(seconds):
                async for part in request.content.iter_any():
                    if held.length + len(part) > most_bytes:
                        raise too_large
                    self._reserve(held, len(part))
                    parts.append(part)
        except TimeoutError:
            raise ApiError("the body did not come in time", reason="Timeout", code=408) from None
        except web.RequestPayloadError as problem:
            raise BadRequestError(f"the body cannot be read: {problem}") from None
        return b"".join(parts)

    def _reserve(self, held: _PendingBody, length: int) -> None:
        held.length += length
        self.length += length
        while self.length > self._max_bytes:
            longest = max((each for each in self._pending if not each.is_whole), key=lambda each: each.length)
            if longest is held:
                raise TooManyRequestsError("too much is being sent at once", retry_after_seconds=1)
            self._discard(longest)
            if longest.request.transport is not None:
                longest.request.transport.abort()  # ends its handler too, and with it what it holds

    def _discard(self, held: _PendingBody) -> None:
        if held in self._pending:
            del self._pending[held]
            self.length -= held.length
