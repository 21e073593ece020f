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

from konverge.cancellation import to_its_end
from konverge.clock import Clock
from konverge.runtime.beside import beside
from konverge.runtime.limited_log import LimitedLog

__all__ = ["Connections", "Presence", "set_up"]

_SHUTDOWN_SECONDS = 1.0
_NO_FILES_SECONDS = 0.1


class Presence:
    """What connections are there for, as far as requests on them tell.

    Attributes:
        heard: Those on which a request's head has come.
        busy: Those whose request is being worked on.
    """

    def __init__(self) -> None:
        self.heard: set[RequestHandler] = set()
        self.busy: set[RequestHandler] = set()

    @contextmanager
    def working(self, request: web.Request) -> Iterator[None]:
        """The whole request is here, and is worked on while the block runs."""
        self.busy.add(request.protocol)
        try:
            yield
        finally:
            self.busy.discard(request.protocol)


class Connections:
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
        presence: Presence,
        context: ssl.SSLContext | None,
        clock: Clock,
        log: logging.Logger,
        *,
        most: int,
        silent_seconds: float,
    ) -> None:
        self._server = server
        self._presence = presence
        self._context = context
        self._clock = clock
        self._log = log
        self._limited_log = LimitedLog(log, clock)
        self._most = most
        self._silent_seconds = silent_seconds
        self._greetings: dict[asyncio.Task[None], None] = {}
        self._since: dict[RequestHandler, float] = {}

    @asynccontextmanager
    async def accepted(self, listening: socket.socket) -> AsyncIterator[None]:
        """Accept while the block runs. Connections that are past their handshake stay then; they are the server's."""
        async with beside(self._accept(listening)):
            yield

    async def _accept(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hang_up_on_the_silent())
            while True:
                try:
                    connected = await _next_connection(listening)
                except OSError as problem:
                    # Out of files, most likely, and they may all be ours.
                    told = f"a connection cannot be accepted now: {problem.strerror or problem}"
                    self._limited_log.add_warning("connections that could not be accepted", told)
                    self._hang_up_on_one()
                    await self._clock.sleep(_NO_FILES_SECONDS)
                    continue
                is_full = len(self._greetings) + len(self._server.connections) >= self._most
                if is_full and not self._hang_up_on_one():
                    connected.close()
                    continue
                greeting = tasks.create_task(self._greet(connected))
                self._greetings[greeting] = None
                greeting.add_done_callback(partial(self._greeted, connected))
                if self._context is None:
                    # Over at once. Those that come in one burst would else be greeted together, and close one another
                    # as the oldest in their handshake, instead of who has been silent for longer.
                    await asyncio.wait([greeting])

    async def _greet(self, connected: socket.socket) -> None:
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

    def _greeted(self, connected: socket.socket, greeting: asyncio.Task[None]) -> None:
        self._greetings.pop(greeting, None)
        if greeting.cancelled():
            connected.close()  # also when it was cancelled before it began

    async def _hang_up_on_the_silent(self) -> None:
        presence = self._presence
        while True:
            now = self._clock.monotonic()
            self._since = {each: self._since.get(each, now) for each in self._server.connections}
            presence.heard &= self._since.keys()
            for each, since in self._since.items():
                if each not in presence.heard and now - since >= self._silent_seconds:
                    _end(each)
            await self._clock.sleep(self._silent_seconds / 5)

    def _hang_up_on_one(self) -> bool:
        if self._greetings:
            oldest = next(iter(self._greetings))
            del self._greetings[oldest]
            oldest.cancel()
            return True
        presence = self._presence
        idle = [each for each in self._server.connections if each not in presence.busy and each.transport is not None]
        chosen = next((each for each in idle if each not in presence.heard), idle[0] if idle else None)
        if chosen is not None:
            _end(chosen)
        return chosen is not None


@asynccontextmanager
async def set_up(runner: web.AppRunner) -> AsyncIterator[web.Server]:
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
        await to_its_end(runner.cleanup())


async def _next_connection(listening: socket.socket) -> socket.socket:
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


def _end(connection: RequestHandler) -> None:
    """Without a goodbye, which whoever does not listen would never answer."""
    transport = connection.transport
    if isinstance(transport, asyncio.WriteTransport):
        transport.abort()
