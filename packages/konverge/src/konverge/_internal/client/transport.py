"""The transport protocol between a client and a server: requests with responses, and streams.

`client.http_transport.HttpTransport` sends over HTTP, the embedded cluster responds in process, and tests
script a transport. None of them depends on Kubernetes: they transport methods, paths, headers and bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

__all__ = ["Response", "SeparableTransport", "StreamingResponse", "Transport"]


class Response(Protocol):
    """A whole response of a server."""

    @property
    def status(self) -> int:
        """The HTTP status code of the response."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case."""

    @property
    def body(self) -> bytes:
        """The whole body; empty if there is none."""


class StreamingResponse(Protocol):
    """The head of a response with a body that is still arriving."""

    @property
    def status(self) -> int:
        """The HTTP status code of the response."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case."""

    def chunks(self) -> AsyncIterator[bytes]:
        """Iterate over the body as it arrives, in pieces of any size, until the server ends it.

        Raises:
            konverge.errors.ConnectionFailedError: The connection broke.
        """

    async def body(self) -> bytes:
        """Return the whole body of an error response, which is not a stream. Its size is limited."""


class Transport(Protocol):
    """A transport of requests to one server as one user."""

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
        """Send one request and wait for the whole response with any status.

        After a cancellation, it is unknown whether the server acted.

        Raises:
            konverge.errors.NotConnectedError: Nothing was sent.
            konverge.errors.ConnectionFailedError: The connection broke, or the deadline passed.
            konverge.errors.NoPermitError: The permit to write (`client.write_permit.current_permit`) ended
                before the request was sent. A transport within the process need not check it.
        """

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AbstractAsyncContextManager[StreamingResponse]:
        """Open a stream: entering waits for the head of the response, leaving closes the connection.

        The deadline covers only the head. The reader of the chunks limits the time of silence.

        Raises:
            konverge.errors.ConnectionFailedError: There was no head in time.
        """

    async def close(self) -> None:
        """Close all connections; the transport cannot be used afterwards."""


@runtime_checkable
class SeparableTransport(Transport, Protocol):
    """A transport that can create another one with separate connections."""

    def with_own_connections(self) -> Transport:
        """Return a transport to the same server as the same user that shares nothing, for any event loop."""
