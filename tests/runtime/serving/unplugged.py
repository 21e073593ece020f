"""A transport between which and its server somebody pulls the plug."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from konverge.client import Response, StreamingResponse, Transport
from konverge.errors import ConnectionFailedError, NotConnectedError

__all__ = ["UnpluggableTransport"]


class UnpluggableTransport:
    """Carries requests while it is plugged in.

    Args:
        inner: What really carries them.
    """

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._unplugged = asyncio.Event()

    def unplug(self) -> None:
        """Cut the streams that are open, and carry nothing more."""
        self._unplugged.set()

    def plug_in(self) -> None:
        """Carry requests again."""
        self._unplugged.clear()

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
        """Carry one request."""
        self._check()
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
        """Open a stream."""
        self._check()
        opened = self._inner.stream(
            method, path, query=query, headers=headers, connect_timeout_seconds=connect_timeout_seconds
        )
        async with opened as answer:
            yield _CuttableResponse(answer, self._unplugged)

    async def close(self) -> None:
        """Close the inner transport."""
        await self._inner.close()

    def _check(self) -> None:
        if self._unplugged.is_set():
            raise NotConnectedError("the plug is out")


class _CuttableResponse:
    def __init__(self, inner: StreamingResponse, cut: asyncio.Event) -> None:
        self._inner = inner
        self._cut = cut
        self.status = inner.status
        self.headers = inner.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner.chunks())
        cut = asyncio.ensure_future(self._cut.wait())
        try:
            while True:
                arriving = asyncio.ensure_future(anext(chunks, None))
                try:
                    await asyncio.wait([arriving, cut], return_when=asyncio.FIRST_COMPLETED)
                    if cut.done():
                        raise ConnectionFailedError("somebody pulled the plug")
                    chunk = arriving.result()
                finally:
                    arriving.cancel()
                    await asyncio.wait([arriving])
                if chunk is None:
                    return
                yield chunk
        finally:
            cut.cancel()

    async def body(self) -> bytes:
        return await self._inner.body()
