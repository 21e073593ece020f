"""The server on a loopback port, for kubectl and other processes (aiohttp)."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from konverge.cancellation import to_its_end
from konverge.errors import ForbiddenError
from konverge.localcluster.answers import Answer, Request, StreamAnswer, failure
from konverge.localcluster.bodies import MAXIMUM_BYTES, too_large
from konverge.localcluster.requests import RequestHandler

__all__ = ["served"]

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_LOOPBACK_NAMES = frozenset({_HOST, "localhost", "::1"})


@asynccontextmanager
async def served(handler: RequestHandler, port: int = 0, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve HTTP on loopback while the block runs; gives the URL.

    Args:
        handler: What answers.
        port: The port, zero for any free one.
        context: The server's certificate; None for HTTP without TLS.

    Raises:
        OSError: The port is taken.
    """
    application = web.Application(client_max_size=MAXIMUM_BYTES + 1)
    application.router.add_route("*", "/{path:.*}", _Adapter(handler).handle)
    # A stream that hangs is cut off with the server: its reader has seen all that there was.
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, _HOST, port, reuse_address=True, ssl_context=context)
        await to_its_end(site.start())  # in the middle of it, its socket is nobody's yet
        bound = runner.addresses[0][1]
        yield f"{'http' if context is None else 'https'}://{_HOST}:{bound}"
    finally:
        handler.close()
        await to_its_end(runner.cleanup())


class _Adapter:
    """Carries requests to the handler and its answers back."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request of aiohttp's."""
        if _is_of_a_web_page(request):
            return _whole(failure(ForbiddenError("web pages may not use this server")))
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _whole(failure(too_large()))
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = await self._handler.answer(
            Request(request.method, request.rel_url.raw_path, dict(request.query), headers, body)
        )
        return _whole(answer) if isinstance(answer, Answer) else await self._stream(request, answer)

    async def _stream(self, request: web.Request, answer: StreamAnswer) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=dict(answer.headers))
        response.enable_chunked_encoding()
        try:
            await response.prepare(request)
            async for chunk in answer.chunks:
                await response.write(chunk)
            await response.write_eof()
        except (ConnectionError, OSError):
            _log.debug("%s: the watcher went away", request.path)
        finally:
            await answer.close()
        return response


def _is_of_a_web_page(request: web.Request) -> bool:
    """Tell whether a browser sends this for a page: where nobody signs in, any page could do what its reader may.

    A page's requests have an ``Origin``, or come under a name that its owner has pointed at this machine.
    """
    return "origin" in request.headers or (request.url.host or "") not in _LOOPBACK_NAMES


def _whole(answer: Answer) -> web.Response:
    response = web.Response(status=answer.status, headers=dict(answer.headers), body=answer.body)
    for text in answer.warning_headers():
        response.headers.add("warning", text)
    return response
