"""The HTTPS server for reviews (aiohttp).

It has one path per webhook, POST only. A body is read completely, in a few seconds and within a common limit, before
its request takes a slot: a slow sender delays no other request. If too many requests wait, the server responds 429. The
deadline of a response is the API server's ``timeout`` parameter minus a margin for the way back: a refusal that
explains the timeout is better than none.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from aiohttp import web

from konverge._internal.runtime.observability.connection_limiter import (
    ConnectionLimiter,
    ConnectionStates,
    start_server,
)
from konverge._internal.runtime.observability.connection_log import build_connection_logger
from konverge._internal.runtime.observability.listen_address import ListenAddress, open_listening_socket
from konverge._internal.runtime.rate_limited_log import RateLimitedLog
from konverge._internal.runtime.webhooks.body_limits import BodyLimiter
from konverge._internal.runtime.webhooks.hooks import OperatorHooks
from konverge._internal.runtime.webhooks.review_handler import handle_admission, handle_conversion
from konverge._internal.runtime.webhooks.webhook_observer import WebhookObserver
from konverge.clock import Clock
from konverge.errors import ApiError, TooManyRequestsError

__all__ = ["ServerLimits", "WebhookApplication", "compute_response_seconds", "run_server"]

ReviewHandler: TypeAlias = Callable[[bytes, float], Awaitable[bytes]]

# An API server accepts objects of up to 3 MiB (apiserver, MaxRequestBodyBytes). A review of an update contains two, and
# more.
_ADMISSION_BYTES = 7 * 1024 * 1024
# One review may contain any number of objects; in practice one, or a page of a list.
_CONVERSION_BYTES = 32 * 1024 * 1024
_ALL_BYTES = 64 * 1024 * 1024
# The API's default for admission. For a conversion the server does not send its timeout.
_DEFAULT_SECONDS = 10.0
_CONVERSION_SECONDS = 30.0
_MAX_SECONDS = 60.0
_MARGIN_SECONDS = 0.5
_CLIENT_WENT_AWAY = 499
# API servers close connections that were idle for 90 s (net/http). If this server closed them first, it would sometimes
# close one on which a request is arriving.
_IDLE_SECONDS = 120.0
# Seconds for which the rest of a body is received after a refusal: a client that is still sending would not see the
# refusal otherwise.
_LINGERING_SECONDS = 1.0
_TIMEOUT = re.compile(r"(?:(\d{1,3})m)?(?:(\d{1,3}(?:\.\d{1,9})?)s)?", re.ASCII)

_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """Limits of a webhook server.

    Args:
        concurrent: Number of reviews that are handled concurrently.
        waiting: Number of further reviews that may wait; the server responds 429 to the next one.
        admission_bytes: Maximum size of an AdmissionReview.
        conversion_bytes: Maximum size of a ConversionReview.
        all_bytes: Maximum size of all bodies together.
        connections: Maximum number of connections.
        receive_seconds: Time limit of a TLS handshake, then of the head of the first request, of each body, and of
            sending a response.
    """

    concurrent: int = 64
    waiting: int = 512
    admission_bytes: int = _ADMISSION_BYTES
    conversion_bytes: int = _CONVERSION_BYTES
    all_bytes: int = _ALL_BYTES
    connections: int = 512
    receive_seconds: float = 5.0


class WebhookApplication:
    """The HTTP application for the webhooks.

    Args:
        hooks: The webhooks.
        clock: Measures the time of responses.
        limits: The limits of the server.
        observer: Receives metrics of each request.

    Attributes:
        limits: The limits of the server.
        clock: Measures the time of responses.
        connection_states: The states of the connections.
        log: Receives refused requests, at a limited rate.
        in_flight: Number of present requests, including waiting ones.
    """

    def __init__(
        self,
        hooks: OperatorHooks,
        clock: Clock,
        *,
        limits: ServerLimits | None = None,
        observer: WebhookObserver | None = None,
    ) -> None:
        self.limits = limits = limits or ServerLimits()
        self.clock = clock
        self._observer = observer
        self._slots = asyncio.Semaphore(limits.concurrent)
        self._body_limiter = BodyLimiter(limits.all_bytes)
        self.connection_states = ConnectionStates()
        self.log = RateLimitedLog(_log, clock)
        self.in_flight = 0
        # Bodies are read in `_handle_request`, each with the limit of its path.
        self.application = web.Application(middlewares=[self._track_connection])
        for hook in hooks.admission:
            self._add_route(hook.path, partial(handle_admission, hook), limits.admission_bytes, _DEFAULT_SECONDS)
        for conversion in hooks.conversion:
            handler = partial(handle_conversion, conversion)
            self._add_route(conversion.path, handler, limits.conversion_bytes, _CONVERSION_SECONDS)
        self.application.router.add_get("/healthz", _handle_health)

    def _add_route(self, path: str, handler: ReviewHandler, max_bytes: int, default_seconds: float) -> None:
        async def handle(request: web.Request) -> web.Response:
            return await self._observe_request(path, self._handle_request(request, handler, max_bytes, default_seconds))

        self.application.router.add_post(path, handle)

    async def _observe_request(self, path: str, responding: Awaitable[web.Response]) -> web.Response:
        begin, code = self.clock.monotonic(), 500
        self.in_flight += 1
        if self._observer is not None:
            self._observer.on_start(path)
        try:
            response = await responding
            code = response.status
            return response
        except asyncio.CancelledError:
            code = _CLIENT_WENT_AWAY
            raise
        finally:
            self.in_flight -= 1
            if self._observer is not None:
                self._observer.on_finish(path, code, seconds=self.clock.monotonic() - begin)

    @web.middleware
    async def _track_connection(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        self.connection_states.heard.add(request.protocol)
        try:
            return await handler(request)
        except web.HTTPClientError as error:  # an unregistered path, or another method
            self._count_refusal(error.reason.replace(" ", ""), error.status, error.reason)
            raise

    def record_bad_request(self) -> None:
        """Count a request that aiohttp answered 400 because it is malformed."""
        self._count_refusal("NotHTTP", 400, "expected HTTP with a short head, found other bytes or a longer head")

    def _count_refusal(self, reason: str, code: int, message: str) -> None:
        if self._observer is not None:
            self._observer.on_refusal(reason)
        self.log.log_warning(reason, f"a request was answered {code}: {message}")

    async def _handle_request(
        self, request: web.Request, handler: ReviewHandler, max_bytes: int, default_seconds: float
    ) -> web.Response:
        seconds = compute_response_seconds(request.query.get("timeout", ""), default_seconds)
        receive_seconds = self.limits.receive_seconds
        begin = self.clock.monotonic()
        try:
            async with self._body_limiter.receive_body(request, max_bytes, min(seconds, receive_seconds)) as body:
                with self.connection_states.busy_connection(request):
                    encoded = await self._process_review(handler, body, begin + seconds)
                # The response is about as large as the body, which counts until the client has received the response.
                return await _send_response(
                    request, web.Response(body=encoded, content_type="application/json"), receive_seconds
                )
        except ApiError as error:
            self._count_refusal(error.reason, error.code, str(error))
            return _build_failure_response(error)

    async def _process_review(self, handler: ReviewHandler, body: bytes, end: float) -> bytes:
        if len(self.connection_states.busy) > self.limits.concurrent + self.limits.waiting:
            raise TooManyRequestsError("too many requests are waiting", retry_after_seconds=1)
        try:
            async with asyncio.timeout(self._compute_seconds_left(end)):
                await self._slots.acquire()
        except TimeoutError:
            raise TooManyRequestsError("no slot became free in time", retry_after_seconds=1) from None
        try:
            return await handler(body, self._compute_seconds_left(end))
        finally:
            self._slots.release()

    def _compute_seconds_left(self, end: float) -> float:
        return max(0.001, end - self.clock.monotonic())


def compute_response_seconds(timeout: str, default_seconds: float) -> float:
    """Return the seconds that a response may take.

    Args:
        timeout: The API server's query parameter, for example ``10s``.
        default_seconds: For a missing or malformed parameter.
    """
    match = _TIMEOUT.fullmatch(timeout)
    seconds = 0.0
    if match is not None:
        seconds = 60.0 * int(match[1] or 0) + float(match[2] or 0)
    whole = min(seconds or default_seconds, _MAX_SECONDS)
    return whole - min(_MARGIN_SECONDS, whole / 10)


@asynccontextmanager
async def run_server(
    application: WebhookApplication, context: ssl.SSLContext, host: str, port: int, *, grace_seconds: float
) -> AsyncIterator[int]:
    """Serve while the block runs; yield the port.

    The exit closes the listening socket, then the connections without a request. Running requests may end within the
    grace period; then they are cancelled.

    Args:
        application: The application.
        context: The server's certificate.
        host: The address to listen on; empty for all.
        port: The port; zero for any free one.
        grace_seconds: Time for running requests to finish after the block.

    Raises:
        ConfigurationError: The server cannot listen on the address.
    """
    runner = web.AppRunner(
        application.application,
        access_log=None,
        logger=build_connection_logger("konverge.webhooks.connections", application.record_bad_request),
        # A disconnected client needs no response: the handler is cancelled.
        handler_cancellation=True,
        keepalive_timeout=_IDLE_SECONDS,
        lingering_time=_LINGERING_SECONDS,
        shutdown_timeout=grace_seconds,
    )
    limits = application.limits
    with closing(application.log):
        async with start_server(runner) as server:
            with await open_listening_socket(ListenAddress(host, port), "the webhook server") as listening:
                connections = ConnectionLimiter(
                    server,
                    application.connection_states,
                    context,
                    application.clock,
                    _log,
                    max_connections=limits.connections,
                    silent_seconds=limits.receive_seconds,
                )
                async with connections.accept_connections(listening):
                    yield listening.getsockname()[1]


async def _send_response(request: web.Request, response: web.Response, seconds: float) -> web.Response:
    """Send the response inside the handler, so that a client that does not read it has a deadline too."""
    try:
        async with asyncio.timeout(seconds):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    return response


async def _handle_health(request: web.Request) -> web.Response:
    return web.Response(text="ok")


def _build_failure_response(error: ApiError) -> web.Response:
    headers = {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(int(error.retry_after_seconds))
    response = web.Response(status=error.code, text=str(error), headers=headers)
    response.force_close()  # API servers never send such requests; other clients need no open connection
    return response
