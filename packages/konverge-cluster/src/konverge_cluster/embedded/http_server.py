"""The server on a loopback port, for kubectl and other processes (aiohttp)."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from konverge.cancellation import await_shielded
from konverge.errors import ForbiddenError
from konverge_cluster.embedded.messages import ServerRequest, ServerResponse, StreamingResponse, build_error_response
from konverge_cluster.embedded.request_bodies import MAXIMUM_BYTES, new_too_large
from konverge_cluster.embedded.request_handler import RequestHandler

__all__ = ["serve_http"]

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_LOOPBACK_NAMES = frozenset({_HOST, "localhost", "::1"})


@asynccontextmanager
async def serve_http(
    handler: RequestHandler, port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve HTTP on loopback while the block runs; gives the URL.

    Args:
        handler: What answers.
        port: The port, zero for any free one.
        context: The server's certificate; None for HTTP without TLS.

    Raises:
        OSError: The port is taken.
    """
    application = web.Application(client_max_size=MAXIMUM_BYTES + 1)
    application.router.add_route("*", "/{path:.*}", _AiohttpAdapter(handler).handle)
    # A stream that hangs is cut off with the server: its reader has seen all that there was.
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, _HOST, port, reuse_address=True, ssl_context=context)
        await await_shielded(site.start())  # in the middle of it, its socket is nobody's yet
        bound = runner.addresses[0][1]
        yield f"{'http' if context is None else 'https'}://{_HOST}:{bound}"
    finally:
        handler.close()
        await await_shielded(runner.cleanup())


class _AiohttpAdapter:
    """Carries requests to the handler and its answers back."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request of aiohttp's."""
        if _is_from_browser(request):
            return _to_aiohttp_response(build_error_response(ForbiddenError("web pages may not use this server")))
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _to_aiohttp_response(build_error_response(new_too_large()))
        headers = {name.lower(): value for name, value in request.headers.items()}
        answer = await self._handler.handle_request(
            ServerRequest(request.method, request.rel_url.raw_path, dict(request.query), headers, body)
        )
        return (
            _to_aiohttp_response(answer) if isinstance(answer, ServerResponse) else await self._stream(request, answer)
        )

    async def _stream(self, request: web.Request, answer: StreamingResponse) -> web.StreamResponse:
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


def _is_from_browser(request: web.Request) -> bool:
    """Tell whether a browser sends this for a page: where nobody signs in, any page could do what its reader may.

    A page's requests have an ``Origin``, or come under a name that its owner has pointed at this machine.
    """
    return "origin" in request.headers or (request.url.host or "") not in _LOOPBACK_NAMES


def _to_aiohttp_response(answer: ServerResponse) -> web.Response:
    response = web.Response(status=answer.status, headers=dict(answer.headers), body=answer.body)
    for text in answer.format_warning_headers():
        response.headers.add("warning", text)
    return response
