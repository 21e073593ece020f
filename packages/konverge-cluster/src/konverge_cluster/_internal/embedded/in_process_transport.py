"""A transport that calls the server without a network: for tests, in real or in simulated time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from konverge.clock import Clock
from konverge.errors import ConnectionFailedError
from konverge_cluster._internal.embedded.messages import ServerRequest, ServerResponse, StreamingResponse
from konverge_cluster._internal.embedded.request_handler import RequestHandler

__all__ = ["InProcessResponse", "InProcessStream", "InProcessTransport"]

_NOTHING: Mapping[str, str] = MappingProxyType({})


class InProcessResponse:
    """A complete response with its body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class InProcessStream:
    """A response whose body is a stream, or a complete response."""

    def __init__(self, answer: ServerResponse | StreamingResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = _build_headers(answer)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the parts of the body as they arrive."""
        if isinstance(self._answer, ServerResponse):
            yield self._answer.body
            return
        async for chunk in self._answer.chunks:
            yield chunk

    async def body(self) -> bytes:
        """Return the body of a complete response; empty for a stream."""
        return self._answer.body if isinstance(self._answer, ServerResponse) else b""


class InProcessTransport:
    """Implements the client's transport protocol with a `RequestHandler`.

    Each request lets other tasks run before and after its handling, as a request over a network does. So the caller
    observes the same order, and a cancellation leaves the same uncertainty.

    Args:
        handler: The handler of the server.
        clock: The clock, which lets other tasks run.
        user_agent: The user agent of requests that have none.
    """

    def __init__(self, handler: RequestHandler, clock: Clock, *, user_agent: str = "") -> None:
        self._handler = handler
        self._clock = clock
        self._user_agent = user_agent
        self._is_closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> InProcessResponse:
        """Send one request and return its complete response.

        Raises:
            ConnectionFailedError: The transport is closed, or the response is a stream without an end.
        """
        answer = await self._send(method, path, query, headers, body)
        if isinstance(answer, StreamingResponse):
            await answer.close()
            raise ConnectionFailedError(f"{method} {path} returned a stream: use stream()")
        await self._clock.sleep(0)
        return InProcessResponse(answer.status, _build_headers(answer), answer.body)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = _NOTHING,
        headers: Mapping[str, str] = _NOTHING,
        connect_timeout_seconds: float,
    ) -> AsyncIterator[InProcessStream]:
        """Open a stream; the block's exit closes it.

        Raises:
            ConnectionFailedError: The transport is closed.
        """
        answer = await self._send(method, path, query, headers, None)
        try:
            yield InProcessStream(answer)
        finally:
            if isinstance(answer, StreamingResponse):
                await answer.close()

    async def close(self) -> None:
        """Close the transport: it sends no more requests."""
        self._is_closed = True

    async def _send(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes | None
    ) -> ServerResponse | StreamingResponse:
        if self._is_closed:
            raise ConnectionFailedError("the transport is closed")
        sent = {name.lower(): value for name, value in headers.items()}
        sent.setdefault("user-agent", self._user_agent)
        await self._clock.sleep(0)
        return await self._handler.handle_request(
            ServerRequest(method, path, dict(query), sent, body or b"", trusted=True)
        )


def _build_headers(answer: ServerResponse | StreamingResponse) -> Mapping[str, str]:
    headers = dict(answer.headers)
    if isinstance(answer, ServerResponse) and answer.warnings:
        headers["warning"] = ", ".join(answer.format_warning_headers())
    return headers
