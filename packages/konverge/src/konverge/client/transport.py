"""The port through which a client reaches a server: requests that are answered, and streams that go on.

`konverge.client.http_transport.HttpTransport` sends over HTTP; the embedded cluster answers in process; a test scripts
one. None
of them knows what Kubernetes is: they carry methods, paths, headers and bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

__all__ = ["Response", "SeparableTransport", "StreamingResponse", "Transport"]


class Response(Protocol):
    """A whole answer."""

    @property
    def status(self) -> int:
        """The HTTP status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case."""

    @property
    def body(self) -> bytes:
        """The whole body; empty when there is none."""


class StreamingResponse(Protocol):
    """The head of an answer whose body is still coming."""

    @property
    def status(self) -> int:
        """The HTTP status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers; names are in lower case."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it arrives, in pieces of no particular size, until the server ends it.

        Raises:
            konverge.errors.ConnectionFailedError: The connection broke.
        """

    async def body(self) -> bytes:
        """All of the body: what a failure has to say. Bounded; for an answer that is not a stream after all."""


class Transport(Protocol):
    """What carries requests to one server as one user."""

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
        """Send one request and wait for its whole answer, whatever its status is.

        Cancelling it leaves open whether the server acted.

        Raises:
            konverge.errors.NotConnectedError: Nothing was sent.
            konverge.errors.ConnectionFailedError: The connection broke, or the deadline passed.
            konverge.errors.NoPermitError: The permit to write (`konverge.client.write_permit.current_permit`) had
            ended when
                the request was about to be sent. A transport within the process need not ask.
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
        """Open a stream: entering waits for the head of the answer, leaving closes the connection.

        The deadline covers the head alone. Whoever reads the chunks decides how long silence may last.

        Raises:
            konverge.errors.ConnectionFailedError: There was no head in time.
        """

    async def close(self) -> None:
        """Close all connections; the transport is of no use afterwards."""


@runtime_checkable
class SeparableTransport(Transport, Protocol):
    """A transport with connections, of which there may be others."""

    def with_own_connections(self) -> Transport:
        """One to the same server as the same user that shares nothing with this one, for any event loop."""
