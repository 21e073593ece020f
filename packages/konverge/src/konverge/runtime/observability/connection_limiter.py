"""Who is connected: so many at most, and nobody who says nothing.

Anybody who reaches a port can open connections. The TLS handshake and the first request have a deadline. When there
are too many connections, one goes that waits for nothing from us, in this order: the oldest in its handshake, the
oldest without a request, the oldest between two requests. One whose request is being worked on never does; if all are,
the new one is closed.
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

from konverge.cancellation import await_shielded
from konverge.clock import Clock
from konverge.runtime.background import background_task
from konverge.runtime.rate_limited_log import RateLimitedLog

__all__ = ["ConnectionLimiter", "ConnectionStates", "start_server"]

_SHUTDOWN_SECONDS = 1.0
_NO_FILES_SECONDS = 0.1


class ConnectionStates:
    """What connections are there for, as far as requests on them tell.

    Attributes:
        heard: Those on which a request's head has come.
        busy: Those whose request is being worked on.
    """

    def __init__(self) -> None:
        self.heard: set[RequestHandler] = set()
        self.busy: set[RequestHandler] = set()

    @contextmanager
    def busy_connection(self, request: web.Request) -> Iterator[None]:
        """The whole request is here, and is worked on while the block runs."""
        self.busy.add(request.protocol)
        try:
            yield
        finally:
            self.busy.discard(request.protocol)


class ConnectionLimiter:
    """Accepts connections for aiohttp's server.

    Args:
        server: What talks HTTP on them.
        presence: What they are there for.
        context: The server's certificate; None for HTTP without TLS.
        clock: Measures how long they say nothing.
        log: Hears of those that cannot be taken on.
        most: How many there are at most, those in their handshake included.
        silent_seconds: How long a handshake may take, and then the first request's head.
    """

    def __init__(
        self,
        server: web.Server,
        presence: ConnectionStates,
        context: ssl.SSLContext | None,
        clock: Clock,
        log: logging.Logger,
        *,
        most: int,
        silent_seconds: float,
    ) -> None:
        self._server = server
        self._states = presence
        self._context = context
        self._clock = clock
        self._log = log
        self._limited_log = RateLimitedLog(log, clock)
        self._max_connections = most
        self._silent_seconds = silent_seconds
        self._handshakes: dict[asyncio.Task[None], None] = {}
        self._since: dict[RequestHandler, float] = {}

    @asynccontextmanager
    async def accept_connections(self, listening: socket.socket) -> AsyncIterator[None]:
        """Accept while the block runs. Connections that are past their handshake stay then; they are the server's."""
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
                    # Out of files, most likely, and they may all be ours.
                    told = f"a connection cannot be accepted now: {problem.strerror or problem}"
                    self._limited_log.log_warning("connections that could not be accepted", told)
                    self._close_one_connection()
                    await self._clock.sleep(_NO_FILES_SECONDS)
                    continue
                is_full = len(self._handshakes) + len(self._server.connections) >= self._max_connections
                if is_full and not self._close_one_connection():
                    connected.close()
                    continue
                greeting = tasks.create_task(self._start_handshake(connected))
                self._handshakes[greeting] = None
                greeting.add_done_callback(partial(self._finish_handshake, connected))
                if self._context is None:
                    # Over at once. Those that come in one burst would else be greeted together, and close one another
                    # as the oldest in their handshake, instead of who has been silent for longer.
                    await asyncio.wait([greeting])

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
            self._log.debug("a connection ended in its handshake: %s", problem)
        except Exception:  # noqa: BLE001  # it is that connection's; the others are still to be accepted
            self._log.exception("a connection could not be taken on")

    def _finish_handshake(self, connected: socket.socket, greeting: asyncio.Task[None]) -> None:
        self._handshakes.pop(greeting, None)
        if greeting.cancelled():
            connected.close()  # also when it was cancelled before it began

    async def _close_silent_connections(self) -> None:
        presence = self._states
        while True:
            now = self._clock.monotonic()
            self._since = {each: self._since.get(each, now) for each in self._server.connections}
            presence.heard &= self._since.keys()
            for each, since in self._since.items():
                if each not in presence.heard and now - since >= self._silent_seconds:
                    _abort_connection(each)
            await self._clock.sleep(self._silent_seconds / 5)

    def _close_one_connection(self) -> bool:
        if self._handshakes:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            oldest.cancel()
            return True
        presence = self._states
        idle = [each for each in self._server.connections if each not in presence.busy and each.transport is not None]
        chosen = next((each for each in idle if each not in presence.heard), idle[0] if idle else None)
        if chosen is not None:
            _abort_connection(chosen)
        return chosen is not None


@asynccontextmanager
async def start_server(runner: web.AppRunner) -> AsyncIterator[web.Server]:
    """The server that aiohttp makes, while the block runs.

    At its end, requests under way may end within the time that the runner was given; what still runs then is cancelled.
    Being cancelled changes nothing of that: half a clean-up would leave connections, and handlers at work, that nobody
    looks after.
    """
    try:
        await runner.setup()
        assert runner.server is not None
        yield runner.server
    finally:
        await await_shielded(runner.cleanup())


async def _wait_for_connection(listening: socket.socket) -> socket.socket:
    """Wait for whoever connects next.

    Not with `loop.sock_accept`: when that is cancelled in the turn in which somebody connects, it has accepted a
    connection that nobody gets to know of.
    """
    loop = asyncio.get_running_loop()
    while True:
        there = asyncio.Event()
        loop.add_reader(listening, there.set)
        try:
            await there.wait()
        finally:
            loop.remove_reader(listening)
        with suppress(BlockingIOError):  # it is somebody else's by now, or has gone
            return listening.accept()[0]


def _abort_connection(connection: RequestHandler) -> None:
    """Without a goodbye, which whoever does not listen would never answer."""
    transport = connection.transport
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
