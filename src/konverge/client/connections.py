"""Connections for requests with whole answers: opened when needed, one request at a time on each, kept for the next.

The HTTP library behind streams can do all of this too, and much that an operator's many small requests never need: its
share of one is 140 us of processor time, this one's 40. What is sent here is sent once: whether a request is sent again
is decided in `konverge.client.retries` alone.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable

import aiohttp

from konverge.client.answers import Answer, AnswerReader, BadAnswerError

__all__ = ["Connections", "NotReachedError"]

_CONNECT_SECONDS = 10.0
# How long both address families are given before the other one is tried besides (RFC 8305).
_OTHER_FAMILY_SECONDS = 0.25
# Servers close what has been idle for a while, and a request that crosses the closing is lost.
_IDLE_SECONDS = 15.0
_CLOSING_SECONDS = 1.0

_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})


class NotReachedError(Exception):
    """No connection came about; its cause says why. Nothing was sent."""


class Connections:
    """The connections to one server, in one event loop.

    Args:
        host: The server's host, without brackets.
        port: Its port.
        limit: How many connections at most; who needs one more waits.
        server_name: The name that its certificate shall be for; empty for the host.
        max_body_bytes: How long the body of an answer may be.
        prepare: Is given the socket of each new connection.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        limit: int,
        server_name: str,
        max_body_bytes: int,
        prepare: Callable[[socket.socket], None],
    ) -> None:
        self._host = host
        self._port = port
        self._server_name = server_name or host
        self._max_body_bytes = max_body_bytes
        self._prepare = prepare
        self._free = asyncio.Semaphore(limit)
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._is_closed = False

    async def request(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        *,
        context: ssl.SSLContext | None,
        not_after: float,
    ) -> Answer:
        """Send one request and wait for its whole answer. Whoever cancels it loses the connection with it.

        Args:
            method: The HTTP method.
            target: The path and the query, quoted.
            headers: What to send besides the length.
            body: What to send; None for nothing.
            context: How to talk TLS; None for not at all.
            not_after: When the time of the event loop is that, it is too late to send anything.

        Raises:
            NotReachedError: There is no connection.
            TimeoutError: It was too late.
            OSError: The connection broke.
            aiohttp.ServerDisconnectedError: The server closed it.
            BadAnswerError: The answer is none.
            ValueError: The request cannot be written as HTTP.
        """
        written = _written(method, target, headers, body)
        async with self._free:
            connection = self._kept(context) or await self._opened(context)
            try:
                # The time-out of a request fires when the event loop gets to it. A process that was frozen and goes on
                # does first what was ready, and that may be to send a write, minutes after the Lease that allowed it
                # was lost.
                if connection.now() >= not_after:
                    raise TimeoutError("not sent in time")
                answer = await connection.exchange(written, AnswerReader(method, self._max_body_bytes))
            except BaseException:
                connection.abort()
                raise
            if answer.is_last:
                connection.abort()
            else:
                self._idle.append(connection)
        return answer

    async def close(self) -> None:
        """Close all of them; a request that is under way fails."""
        self._is_closed = True
        self._idle.clear()
        lost = [connection.lost for connection in self._open]
        for connection in list(self._open):
            connection.abort()
        if lost:
            await asyncio.wait(lost, timeout=_CLOSING_SECONDS)

    def _kept(self, context: ssl.SSLContext | None) -> _Connection | None:
        """One that is idle, and open as far as is known."""
        while self._idle:
            connection = self._idle.pop()
            if connection.is_good(context):
                return connection
            connection.abort()
        return None

    async def _opened(self, context: ssl.SSLContext | None) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop, context, self._open.discard),
                    self._host,
                    self._port,
                    ssl=context,
                    server_hostname=self._server_name if context is not None else None,
                    happy_eyeballs_delay=_OTHER_FAMILY_SECONDS,
                )
        except OSError as error:
            raise NotReachedError(str(error)) from error
        if self._is_closed:
            connection.abort()
            raise NotReachedError("it has been closed meanwhile")
        self._prepare(connection.transport.get_extra_info("socket"))
        if not connection.lost.done():
            self._open.add(connection)
        return connection


class _Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        context: ssl.SSLContext | None,
        forget: Callable[[_Connection], None],
    ) -> None:
        self.transport: asyncio.Transport
        self.lost: asyncio.Future[None] = loop.create_future()
        self.now = loop.time
        self._loop = loop
        self._context = context
        self._forget = forget
        self._reader: AnswerReader | None = None
        self._answer: asyncio.Future[Answer] | None = None
        self._used_at = 0.0

    async def exchange(self, written: bytes, reader: AnswerReader) -> Answer:
        """Send a request and wait for its answer."""
        if self.lost.done():
            raise aiohttp.ServerDisconnectedError
        self._reader, self._answer = reader, self._loop.create_future()
        self.transport.write(written)
        answer = await self._answer
        self._used_at = self.now()
        return answer

    def is_good(self, context: ssl.SSLContext | None) -> bool:
        """Tell whether another request may be sent: it is open, was not idle for long, and is of that context."""
        is_fresh = self.now() - self._used_at < _IDLE_SECONDS
        return is_fresh and self._context is context and not self.lost.done() and not self.transport.is_closing()

    def abort(self) -> None:
        """Close it at once, without a goodbye: the answer to that would have to be waited for."""
        self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            self.abort()  # nobody has asked
            return
        try:
            answer = self._reader.feed(data)
        except BadAnswerError as error:
            self._settle(error)
            self.abort()
        else:
            self._settle(answer)

    def eof_received(self) -> None:
        if self._reader is None:
            return
        try:
            self._settle(self._reader.end())
        except BadAnswerError as error:
            self._settle(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget(self)
        if not self.lost.done():
            self.lost.set_result(None)
        self._settle(exc or aiohttp.ServerDisconnectedError())

    def _settle(self, found: Answer | Exception | None) -> None:
        """Tell whoever waits what has become of the request; None: not known yet."""
        if found is None or self._answer is None:
            return
        if not self._answer.done():
            if isinstance(found, Exception):
                self._answer.set_exception(found)
            else:
                self._answer.set_result(found)
        self._reader = self._answer = None


def _written(method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> bytes:
    """The request as it goes over the wire."""
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if body is not None or method not in _WITHOUT_BODY:
        lines.append(f"content-length: {len(body or b'')}")
    head = "\r\n".join(lines)
    breaks = len(lines) - 1
    if head.count("\r") != breaks or head.count("\n") != breaks or "\0" in head:
        raise ValueError("a header holds what no header can")  # not which: it may be the token
    return head.encode() + b"\r\n\r\n" + (body or b"")
