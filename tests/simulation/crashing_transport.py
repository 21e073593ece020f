"""A transport that dies at a chosen request, like a process after ``kill -9``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from konverge.client import Response, StreamingResponse, Transport

__all__ = ["CrashingTransport"]


class CrashingTransport:
    """Forwards requests until the fatal one, and nothing afterwards.

    Args:
        inner: The transport that sends the requests.
        fatal: The number, from 1, of the request at which the process dies; 0 for never. Streams do not count.
        answered: True to die after the server acted and before the response arrives; False to die before the request is
            sent.

    Attributes:
        sent: The number of requests, including the fatal one.
        died: Set at the fatal request.
        settled: Set when the fatal request has had its effect on the server, if any.
    """

    def __init__(self, inner: Transport, *, fatal: int = 0, answered: bool = False) -> None:
        self._inner = inner
        self._fatal = fatal
        self._answered = answered
        self.sent = 0
        self.died = asyncio.Event()
        self.settled = asyncio.Event()
        self._withheld: Callable[[], Awaitable[Response]] | None = None

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> Response:
        """Forward one request, or die."""
        if self.died.is_set():
            await _silence()
        self.sent += 1
        is_fatal = self.sent == self._fatal
        if is_fatal:
            self.died.set()
            if not self._answered:
                self._withheld = partial(
                    self._inner.request,
                    method,
                    path,
                    query=query,
                    headers=headers,
                    body=body,
                    timeout_seconds=timeout_seconds,
                )
                self.settled.set()
                await _silence()
        answer = await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout_seconds=timeout_seconds
        )
        if is_fatal:
            self.settled.set()
            await _silence()
        return answer

    async def deliver_late(self) -> Response:
        """Send the request at which the process died, like a network that delayed it."""
        assert self._withheld is not None, "the process did not die before a request"
        return await self._withheld()

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AsyncIterator[StreamingResponse]:
        """Open a stream unless the transport is dead."""
        if self.died.is_set():
            await _silence()
        opened = self._inner.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        )
        async with opened as answer:
            yield answer

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()


async def _silence() -> None:
    await asyncio.Event().wait()
