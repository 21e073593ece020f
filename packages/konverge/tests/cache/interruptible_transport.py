"""A transport with streams that a test can cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from konverge.client import Response, StreamingResponse, Transport
from konverge.errors import ConnectionFailedError

__all__ = ["InterruptibleTransport"]


class InterruptibleTransport:
    """A transport that forwards everything until a test cuts its streams, optionally after a last line of the test.

    Args:
        inner: The real transport.

    Attributes:
        reachable: Whether new streams are opened.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._open: set[InterruptibleStream] = set()
        self.reachable = True

    def cut(self, last_line: bytes = b"") -> None:
        """End every stream, even a silent one."""
        for stream in self._open:
            stream.last_line = last_line
            stream.is_cut.set()

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
        return await self._inner.request(
            method, path, query=query, headers=headers, body=body, timeout_seconds=timeout_seconds
        )

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
        if not self.reachable:
            raise ConnectionFailedError("the test has cut the cable")
        opening = self._inner.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        )
        async with opening as response:
            stream = InterruptibleStream(response)
            self._open.add(stream)
            try:
                yield stream
            finally:
                self._open.discard(stream)

    async def close(self) -> None:
        await self._inner.close()


class InterruptibleStream:
    """A stream that drops all data after the cut."""

    def __init__(self, inner: StreamingResponse) -> None:
        self._inner = inner
        self.status, self.headers = inner.status, inner.headers
        self.is_cut = asyncio.Event()
        self.last_line = b""

    async def chunks(self) -> AsyncIterator[bytes]:
        cut = asyncio.create_task(self.is_cut.wait())
        chunks = aiter(self._inner.chunks())
        try:
            while True:
                coming = asyncio.ensure_future(anext(chunks))
                try:
                    await asyncio.wait([cut, coming], return_when=asyncio.FIRST_COMPLETED)
                    if self.is_cut.is_set():
                        break
                    yield await coming
                except StopAsyncIteration:
                    return
                finally:
                    coming.cancel()
        finally:
            cut.cancel()
        if self.last_line:
            yield self.last_line + b"\n"
        raise ConnectionFailedError("the test has cut the cable")

    async def body(self) -> bytes:
        return await self._inner.body()
