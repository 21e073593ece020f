"""Limit on the number of connections, and on the silence of a connection.

Any client that reaches a port can open connections. The TLS handshake and the first request therefore have a deadline.
When there are too many connections, one that waits for no response is closed, in this order: the oldest in its
handshake, the oldest without a request, the oldest between two requests. A connection with a running request is never
closed; if all have one, the new connection is closed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from konverge._internal.cancellation import await_shielded
from konverge._internal.runtime.background import background_task
from konverge._internal.runtime.rate_limited_log import RateLimitedLog
from konverge.clock import Clock

__all__ = ["ConnectionLimiter", "ConnectionStates", "start_server"]

_SHUTDOWN_SECONDS = 1.0
_NO_FILES_SECONDS = 0.1


class ConnectionStates:
    """States of the connections, as far as their requests show.

    Attributes:
        heard: Connections on which the head of a request has arrived.
        busy: Connections with a running request.
    """

    def __init__(self) -> None:
        self.heard: set[RequestHandler] = set()
        self.busy: set[RequestHandler] = set()

    @contextmanager
    def busy_connection(self, request: web.Request) -> Iterator[None]:
        """Mark the connection as busy while the block handles its complete request."""
        self.busy.add(request.protocol)
        try:
            yield
        finally:
            self.busy.discard(request.protocol)


class ConnectionLimiter:
    """Accepts connections for aiohttp's server.

    Args:
        server: Speaks HTTP on the connections.
        states: States of the connections.
        context: The server's certificate; None for HTTP without TLS.
        clock: Measures the silence of connections.
        log: Receives the errors of connections.
        max_connections: Maximum number of connections, including those in their handshake.
        silent_seconds: Time limit of a handshake, and then of the first request's head.
    """

    def __init__(
        self,
        server: web.Server,
        states: ConnectionStates,
        context: ssl.SSLContext | None,
        clock: Clock,
        log: logging.Logger,
        *,
        max_connections: int,
        silent_seconds: float,
    ) -> None:
        self._server = server
        self._states = states
        self._context = context
        self._clock = clock
        self._log = log
        self._limited_log = RateLimitedLog(log, clock)
        self._max_connections = max_connections
        self._silent_seconds = silent_seconds
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._since: dict[RequestHandler, float] = {}

    @asynccontextmanager
    async def accept_connections(self, listening: socket.socket) -> AsyncIterator[None]:
        """Accept connections while the block runs. At its end, established connections stay with the server."""
        async with background_task(self._accept_forever(listening)):
            yield

    async def _accept_forever(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._close_silent_connections())
            while True:
                try:
                    connected = await _wait_for_connection(listening)
                except OSError as problem:
                    # Probably the process has no free file descriptors, and its own connections may use all of them.
                    message = f"accepting a connection failed: {problem.strerror or problem}"
                    self._limited_log.log_warning("connections that could not be accepted", message)
                    self._close_one_connection()
                    await self._clock.sleep(_NO_FILES_SECONDS)
                    continue
                is_full = len(self._handshakes) + len(self._server.connections) >= self._max_connections
                if is_full and not self._close_one_connection():
                    connected.close()
                    continue
                handshake = tasks.create_task(self._start_handshake(connected))
                self._handshakes[handshake] = None
                handshake.add_done_callback(partial(self._finish_handshake, connected))
                if self._context is None:
                    # This returns at once. Otherwise the connections of one burst would be in their handshake together
                    # and close one another as the oldest, instead of the longest silent connection.
                    await asyncio.wait([handshake])

    async def _start_handshake(self, connected: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._server,
                connected,
                ssl=self._context,
                ssl_handshake_timeout=None if self._context is None else self._silent_seconds,
                ssl_shutdown_timeout=None if self._context is None else _SHUTDOWN_SECONDS,
            )
        except OSError as problem:
            self._log.debug("a connection was closed during its handshake: %s", problem)
        except Exception:  # noqa: BLE001  # the error concerns this connection; the others must still be accepted
            self._log.exception("the setup of a connection failed")

    def _finish_handshake(self, connected: socket.socket, handshake: asyncio.Task[None]) -> None:
        self._handshakes.pop(handshake, None)
        if handshake.cancelled():
            connected.close()  # also if it was cancelled before it began

    async def _close_silent_connections(self) -> None:
        states = self._states
        while True:
            now = self._clock.monotonic()
            self._since = {connection: self._since.get(connection, now) for connection in self._server.connections}
            states.heard &= self._since.keys()
            for connection, since in self._since.items():
                if connection not in states.heard and now - since >= self._silent_seconds:
                    _abort_connection(connection)
            await self._clock.sleep(self._silent_seconds / 5)

    def _close_one_connection(self) -> bool:
        if self._handshakes:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
            return True
        states = self._states
        idle = [
            connection
            for connection in self._server.connections
            if connection not in states.busy and connection.transport is not None
        ]
        silent = (connection for connection in idle if connection not in states.heard)
        chosen = next(silent, idle[0] if idle else None)
        if chosen is not None:
            _abort_connection(chosen)
        return chosen is not None


@asynccontextmanager
async def start_server(runner: web.AppRunner) -> AsyncIterator[web.Server]:
    """Run the server that aiohttp builds while the block runs.

    At the end of the block, running requests may end within the shutdown timeout of the runner; then they are
    cancelled. Cancellation does not change that: half a cleanup would leave connections and handlers without an owner.
    """
    try:
        await runner.setup()
        assert runner.server is not None
        yield runner.server
    finally:
        await await_shielded(runner.cleanup())


async def _wait_for_connection(listening: socket.socket) -> socket.socket:
    """Wait for the next connection.

    `loop.sock_accept` is not an alternative: if it is cancelled in the loop iteration in which a client connects, it
    has accepted a connection that no code knows.
    """
    loop = asyncio.get_running_loop()
    while True:
        there = asyncio.Event()
        loop.add_reader(listening, there.set)
        try:
            await there.wait()
        finally:
            loop.remove_reader(listening)
        with suppress(BlockingIOError):  # another process accepted it, or it is closed
            return listening.accept()[0]


def _abort_connection(connection: RequestHandler) -> None:
    """Close the connection without a TLS shutdown, to which a silent client would never respond."""
    transport = connection.transport
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
