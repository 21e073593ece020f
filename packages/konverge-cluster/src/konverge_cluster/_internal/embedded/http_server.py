"""The HTTP server of the cluster on a loopback port, for kubectl and other processes (aiohttp)."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from multidict import CIMultiDictProxy

from konverge._internal.cancellation import await_shielded
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.messages import (
    ServerRequest,
    ServerResponse,
    StreamingResponse,
    build_error_response,
)
from konverge_cluster._internal.embedded.request_bodies import MAXIMUM_BYTES, new_too_large
from konverge_cluster._internal.embedded.request_handler import RequestHandler

__all__ = ["serve_http"]

_log = logging.getLogger(__name__)

_HOST = "127.0.0.1"
_LOOPBACK_NAMES = frozenset({_HOST, "localhost", "::1"})


@asynccontextmanager
async def serve_http(
    handler: RequestHandler, port: int = 0, context: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve HTTP on loopback while the block runs; the value is the URL.

    Args:
        handler: The handler of all requests.
        port: The port; zero for any free port.
        context: The TLS context with the server's certificate; None for HTTP without TLS.

    Raises:
        OSError: The port is in use.
    """
    application = web.Application(client_max_size=MAXIMUM_BYTES + 1)
    application.router.add_route("*", "/{path:.*}", _AiohttpAdapter(handler).handle)
    # A stream whose client does not read is cut off at shutdown: everything was already sent.
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, _HOST, port, reuse_address=True, ssl_context=context)
        await await_shielded(site.start())  # shielded: a cancellation halfway would leave a socket that is never closed
        bound = runner.addresses[0][1]
        yield f"{'http' if context is None else 'https'}://{_HOST}:{bound}"
    finally:
        handler.close()
        await await_shielded(runner.cleanup())


class _AiohttpAdapter:
    """Passes requests from aiohttp to the handler, and responses back."""

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request of aiohttp."""
        if _is_from_browser(request):
            return _to_aiohttp_response(build_error_response(ForbiddenError("web pages may not use this server")))
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return _to_aiohttp_response(build_error_response(new_too_large()))
        headers = _join_headers(request.headers)
        response = await self._handler.handle_request(
            ServerRequest(request.method, request.rel_url.raw_path, dict(request.query), headers, body)
        )
        return (
            _to_aiohttp_response(response)
            if isinstance(response, ServerResponse)
            else await self._stream(request, response)
        )

    async def _stream(self, request: web.Request, response: StreamingResponse) -> web.StreamResponse:
        sent = web.StreamResponse(status=response.status, headers=dict(response.headers))
        sent.enable_chunked_encoding()
        try:
            await sent.prepare(request)
            async for chunk in response.chunks:
                await sent.write(chunk)
            await sent.write_eof()
        except (ConnectionError, OSError):
            _log.debug("%s: the client closed the watch", request.path)
        finally:
            await response.close()
        return sent


def _join_headers(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """Return one value for each header, as `ServerRequest` defines."""
    joined: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        separator = "\n" if key.startswith("impersonate-") else ", "
        joined[key] = f"{joined[key]}{separator}{value}" if key in joined else value
    return joined


def _is_from_browser(request: web.Request) -> bool:
    """Return True if a browser sends this for a page: without authentication, any page could act as its reader.

    Requests of a page have an ``Origin``, or use a host name that its owner resolves to this machine.
    """
    return "origin" in request.headers or (request.url.host or "") not in _LOOPBACK_NAMES


def _to_aiohttp_response(response: ServerResponse) -> web.Response:
    converted = web.Response(status=response.status, headers=dict(response.headers), body=response.body)
    for text in response.format_warning_headers():
        converted.headers.add("warning", text)
    return converted
