"""A small HTTP server for those who only read: probes, scrapers, a person.

Everything is bounded: the size of a request (aiohttp's limits on its lines), the time for an answer, the number of
connections. When there are too many, the oldest one goes: whoever opens connections and says nothing can never keep a
probe out.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aiohttp import web

from konverge.runtime.serving.addresses import Address, listening_socket
from konverge.runtime.serving.authentication import Authenticator, bearer_token
from konverge.runtime.serving.connection_log import connection_log

__all__ = ["Handler", "ReadServer", "authenticated"]

_log = logging.getLogger("konverge.runtime.serving")

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.Response]]

_MAX_CONNECTIONS = 64
_ANSWER_SECONDS = 10.0
_STOP_SECONDS = 1.0
_HANDSHAKE_SECONDS = 10.0
_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class ReadServer:
    """Serves some paths while its block runs (``async with``); the port is taken on entry.

    Leaving the block, or cancelling it, closes the port and cuts off who is still reading after a second.

    Args:
        what: What the server is called in messages.
        address: Where it listens.
        handlers: What answers, by path as aiohttp writes it.
        tls: The context for HTTPS; None for HTTP.

    Raises:
        ConfigurationError: On entry: the address cannot be listened on.
    """

    def __init__(
        self, what: str, address: Address, handlers: Mapping[str, Handler], *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._what = what
        self._address = address
        self._tls = tls
        self._port = 0
        application = web.Application(client_max_size=1, middlewares=[_guarded])
        for path, handler in handlers.items():
            application.router.add_get(path, handler)
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=connection_log("konverge.runtime.serving.connections"),
            handler_cancellation=True,
            shutdown_timeout=_STOP_SECONDS,
        )
        self._listener: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that it listens on, also when any free one was asked for."""
        return self._port

    async def __aenter__(self) -> ReadServer:
        listening = await asyncio.to_thread(listening_socket, self._address, self._what)
        try:
            self._port = listening.getsockname()[1]
            await self._runner.setup()
            self._listener = await asyncio.get_running_loop().create_server(
                self._accept,
                sock=listening,
                ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else _HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=None if self._tls is None else _STOP_SECONDS,
            )
        except BaseException:
            listening.close()
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _accept(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None
        # One that is being closed is still among them; of many that come at one moment each has to close another.
        staying = [each for each in server.connections if each.transport is not None]
        if len(staying) >= _MAX_CONNECTIONS:
            staying[0].force_close()
        return server()


def authenticated(handler: Handler, authenticator: Authenticator | None) -> Handler:
    """The handler behind an authenticator; open to everybody without one."""
    if authenticator is None:
        return handler
    deciding = authenticator

    async def guarded(request: web.Request) -> web.Response:
        token = bearer_token(request.headers.get("Authorization", ""))
        decision = await deciding.decide(token, method=request.method, path=request.path)
        if decision.status == 200:
            return await handler(request)
        headers = {"WWW-Authenticate": 'Basic realm="konverge"'} if decision.status == 401 else {}
        return web.Response(status=decision.status, text=decision.text, headers=headers)

    return guarded


@web.middleware
async def _guarded(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer in time whatever the handler does."""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            response = await handler(request)
    except web.HTTPException as refusal:
        return web.Response(status=refusal.status, text=f"{refusal.reason}\n", headers=_HEADERS)
    except TimeoutError:
        return web.Response(status=503, text="no answer in time\n", headers=_HEADERS)
    except Exception:  # noqa: BLE001  # one request's failure is that request's
        _log.exception("a request for %r failed", request.path)
        return web.Response(status=500, text="internal server error\n", headers=_HEADERS)
    response.headers.update(_HEADERS)
    return response
