"""A small HTTP server for read requests: probes, scrapers, users.

Everything has a limit: the size of a request (aiohttp's limits on its lines), the time for it and for its response, and
the number of connections. When there are too many, the oldest connection is closed, silent ones first: a client that
opens connections can never block a probe. Connections with a running request are not exempt; otherwise clients of slow
requests could occupy all of them.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeAlias

from aiohttp import web

from konverge._internal.runtime.observability.authentication import Authenticator, parse_bearer_token
from konverge._internal.runtime.observability.connection_limiter import (
    ConnectionLimiter,
    ConnectionStates,
    start_server,
)
from konverge._internal.runtime.observability.connection_log import build_connection_logger
from konverge._internal.runtime.observability.listen_address import ListenAddress, open_listening_socket
from konverge.clock import Clock

__all__ = ["Handler", "ReadServer", "require_authentication"]

_log = logging.getLogger("konverge.runtime")

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]

_MAX_CONNECTIONS = 64
_RESPONSE_SECONDS = 10.0
_STOP_SECONDS = 1.0
_SILENT_SECONDS = 10.0
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class ReadServer:
    """Serves some paths while its block runs (``async with``); entering opens the port.

    Leaving the block, or cancelling it, closes the port, and one second later all remaining connections.

    Args:
        what: Name of the server in messages.
        address: The address to listen on.
        handlers: The handlers, by path in aiohttp's syntax.
        clock: Measures the silence of connections.
        tls: The context for HTTPS; None for HTTP.

    Raises:
        ConfigurationError: On entry: the server cannot listen on the address.
    """

    def __init__(
        self,
        what: str,
        address: ListenAddress,
        handlers: Mapping[str, Handler],
        clock: Clock,
        *,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._purpose = what
        self._address = address
        self._clock = clock
        self._tls = tls
        self._port = 0
        self._connection_states = ConnectionStates()
        self._stack = AsyncExitStack()
        application = web.Application(client_max_size=1, middlewares=[self._track_connection, _enforce_timeout])
        for path, handler in handlers.items():
            application.router.add_get(path, handler)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=build_connection_logger("konverge.runtime"),
            handler_cancellation=True,
            shutdown_timeout=_STOP_SECONDS,
        )

    @property
    def port(self) -> int:
        """The port of the server, also if any free port was requested."""
        return self._port

    async def __aenter__(self) -> ReadServer:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(start_server(self._runner))
            listening = stack.enter_context(await open_listening_socket(self._address, self._purpose))
            self._port = listening.getsockname()[1]
            connections = ConnectionLimiter(
                server,
                self._connection_states,
                self._tls,
                self._clock,
                _log,
                max_connections=_MAX_CONNECTIONS,
                silent_seconds=_SILENT_SECONDS,
            )
            await stack.enter_async_context(connections.accept_connections(listening))
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @web.middleware
    async def _track_connection(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self._connection_states.heard.add(request.protocol)
        return await handler(request)


def require_authentication(handler: Handler, authenticator: Authenticator | None) -> Handler:
    """Return the handler behind an authenticator; without one, all clients have access."""
    if authenticator is None:
        return handler
    required = authenticator

    async def handle_authenticated(request: web.Request) -> web.Response:
        token = parse_bearer_token(request.headers.get("Authorization", ""))
        decision = await required.decide(token, method=request.method, path=request.path)
        if decision.status == 200:
            return await handler(request)
        headers = {"WWW-Authenticate": 'Basic realm="konverge"'} if decision.status == 401 else {}
        return web.Response(status=decision.status, text=decision.text, headers=headers)

    return handle_authenticated


@web.middleware
async def _enforce_timeout(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Respond in time, regardless of the handler."""
    try:
        async with asyncio.timeout(_RESPONSE_SECONDS):
            response = await handler(request)
    except web.HTTPException as refusal:
        return web.Response(status=refusal.status, text=f"{refusal.reason}\n", headers=_HEADERS)
    except TimeoutError:
        return web.Response(status=503, text="no response in time\n", headers=_HEADERS)
    except Exception:  # noqa: BLE001  # a failure concerns only its request
        _log.exception("%r: the handler of a request failed", request.path)
        return web.Response(status=500, text="internal server error\n", headers=_HEADERS)
    response.headers.update(_HEADERS)
    return response
