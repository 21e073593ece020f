"""The HTTPS server that API servers ask (aiohttp).

One path a webhook, POST only. A body is read whole, in few seconds and within a bound for all, before its request takes
a place among those that are worked on: whoever sends slowly is in nobody's way. Who finds too many waiting is told to
come back. The deadline of an answer is the one that the API server names in ``timeout``, less a margin for the way
back: a refusal that says what took too long is better than none.
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

from konverge.clock import Clock
from konverge.errors import ApiError, TooManyRequestsError
from konverge.runtime.observability.connection_limiter import ConnectionLimiter, ConnectionStates, start_server
from konverge.runtime.observability.connection_log import build_connection_logger
from konverge.runtime.observability.listen_address import ListenAddress, open_listening_socket
from konverge.runtime.rate_limited_log import RateLimitedLog
from konverge.runtime.webhooks.body_limits import BodyLimiter
from konverge.runtime.webhooks.hooks import OperatorHooks
from konverge.runtime.webhooks.review_handler import handle_admission, handle_conversion
from konverge.runtime.webhooks.webhook_observer import WebhookObserver

__all__ = ["ServerLimits", "WebhookApplication", "compute_response_seconds", "run_server"]

ReviewHandler: TypeAlias = Callable[[bytes, float], Awaitable[bytes]]

# An API server takes objects of up to 3 MiB (apiserver, MaxRequestBodyBytes). An update has two, and then some.
_ADMISSION_BYTES = 7 * 1024 * 1024
# Objects of any number come in one review; in practice one, or a page of a list.
_CONVERSION_BYTES = 32 * 1024 * 1024
_ALL_BYTES = 64 * 1024 * 1024
# The API's default for admission; of a conversion the server does not say how long it waits.
_DEFAULT_SECONDS = 10.0
_CONVERSION_SECONDS = 30.0
_MAX_SECONDS = 60.0
_MARGIN_SECONDS = 0.5
_CLIENT_WENT_AWAY = 499
# API servers end connections that were idle for 90 s (net/http): if we did so first, we would now and then hit one on
# which a question is just coming.
_IDLE_SECONDS = 120.0
# How long the rest of a body is taken in after a refusal: who is still sending would not see it otherwise.
_LINGERING_SECONDS = 1.0
_TIMEOUT = re.compile(r"(?:(\d{1,3})m)?(?:(\d{1,3}(?:\.\d{1,9})?)s)?", re.ASCII)

_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a server takes on at once.

    Args:
        concurrent: How many requests are worked on.
        waiting: How many more may wait for that; the next is answered 429.
        admission_bytes: How long an AdmissionReview may be.
        conversion_bytes: How long a ConversionReview may be.
        all_bytes: How long all together may be.
        connections: How many connections there may be.
        receive_seconds: How long a TLS handshake may take, then the head of the first request, and each body; and how
            long the client may take to read the answer.
    """

    concurrent: int = 64
    waiting: int = 512
    admission_bytes: int = _ADMISSION_BYTES
    conversion_bytes: int = _CONVERSION_BYTES
    all_bytes: int = _ALL_BYTES
    connections: int = 512
    receive_seconds: float = 5.0


class WebhookApplication:
    """Answers the HTTP requests for hooks.

    Args:
        hooks: What is served.
        clock: Measures how long answers take.
        limits: What it takes on at once.
        observer: Hears of each request.

    Attributes:
        limits: What it takes on at once.
        clock: Measures how long answers take.
        connection_states: What connections are there for.
        log: Hears of requests that are refused, at a limited rate.
        in_flight: How many requests are here, those that wait included.
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
        # Bodies are read here, each with the limit of its path.
        self.application = web.Application(middlewares=[self._track_connection])
        for hook in hooks.admission:
            self._add_route(hook.path, partial(handle_admission, hook), limits.admission_bytes, _DEFAULT_SECONDS)
        for conversion in hooks.conversion:
            answering = partial(handle_conversion, conversion)
            self._add_route(conversion.path, answering, limits.conversion_bytes, _CONVERSION_SECONDS)
        self.application.router.add_get("/healthz", _handle_health)

    def _add_route(self, path: str, answering: ReviewHandler, most_bytes: int, default_seconds: float) -> None:
        async def handle(request: web.Request) -> web.Response:
            return await self._observe_request(
                path, self._handle_request(request, answering, most_bytes, default_seconds)
            )

        self.application.router.add_post(path, handle)

    async def _observe_request(self, path: str, answer: Awaitable[web.Response]) -> web.Response:
        begin, code = self.clock.monotonic(), 500
        self.in_flight += 1
        if self._observer is not None:
            self._observer.on_start(path)
        try:
            response = await answer
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
        except web.HTTPClientError as error:  # no webhook has that path, or it is asked by another method
            self._count_refusal(error.reason.replace(" ", ""), error.status, error.reason)
            raise

    def record_bad_request(self) -> None:
        """Count a request that aiohttp has answered 400, because it cannot be read."""
        self._count_refusal("NotHTTP", 400, "it is no HTTP, or its head is too long")

    def _count_refusal(self, reason: str, code: int, message: str) -> None:
        if self._observer is not None:
            self._observer.on_refusal(reason)
        self.log.log_warning(reason, f"a request was answered {code}: {message}")

    async def _handle_request(
        self, request: web.Request, answering: ReviewHandler, most_bytes: int, default_seconds: float
    ) -> web.Response:
        seconds = compute_response_seconds(request.query.get("timeout", ""), default_seconds)
        receive_seconds = self.limits.receive_seconds
        begin = self.clock.monotonic()
        try:
            async with self._body_limiter.receive_body(request, most_bytes, min(seconds, receive_seconds)) as body:
                with self.connection_states.busy_connection(request):
                    answer = await self._process_review(answering, body, begin + seconds)
                # Its length is that of the body, more or less: it counts as one until the client has it.
                return await _send_response(
                    request, web.Response(body=answer, content_type="application/json"), receive_seconds
                )
        except ApiError as error:
            self._count_refusal(error.reason, error.code, str(error))
            return _build_failure_response(error)

    async def _process_review(self, answering: ReviewHandler, body: bytes, end: float) -> bytes:
        if len(self.connection_states.busy) > self.limits.concurrent + self.limits.waiting:
            raise TooManyRequestsError("too many requests wait already", retry_after_seconds=1)
        try:
            async with asyncio.timeout(self._compute_seconds_left(end)):
                await self._slots.acquire()
        except TimeoutError:
            raise TooManyRequestsError("there was no room in time", retry_after_seconds=1) from None
        try:
            return await answering(body, self._compute_seconds_left(end))
        finally:
            self._slots.release()

    def _compute_seconds_left(self, end: float) -> float:
        return max(0.001, end - self.clock.monotonic())


def compute_response_seconds(timeout: str, default_seconds: float) -> float:
    """How long an answer may take.

    Args:
        timeout: What the API server says in the query, for example ``10s``.
        default_seconds: When it says nothing, or nothing that can be read.
    """
    found = _TIMEOUT.fullmatch(timeout)
    seconds = 0.0
    if found is not None:
        seconds = 60.0 * int(found[1] or 0) + float(found[2] or 0)
    whole = min(seconds or default_seconds, _MAX_SECONDS)
    return whole - min(_MARGIN_SECONDS, whole / 10)


@asynccontextmanager
async def run_server(
    application: WebhookApplication, context: ssl.SSLContext, host: str, port: int, *, grace_seconds: float
) -> AsyncIterator[int]:
    """Serve while the block runs; gives the port.

    Leaving stops in this order: no new connection, those without a request are closed, requests under way may end
    within the grace; what still runs then is cancelled.

    Args:
        application: What answers.
        context: The server's certificate.
        host: The address to listen at; empty for all.
        port: The port; zero for any free one.
        grace_seconds: How long requests under way may take after the block.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    runner = web.AppRunner(
        application.application,
        access_log=None,
        logger=build_connection_logger("konverge.webhooks.connections", application.record_bad_request),
        # Nobody waits for an answer any more: the handler need not go on.
        handler_cancellation=True,
        keepalive_timeout=_IDLE_SECONDS,
        lingering_time=_LINGERING_SECONDS,
        shutdown_timeout=grace_seconds,
    )
    limits = application.limits
    with closing(application.log):
        async with start_server(runner) as server:
            with await open_listening_socket(ListenAddress(host, port), "the server of the webhooks") as listening:
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
    """Send an answer here, and not after the handler's end: a client that does not read it has a deadline too."""
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
    response.force_close()  # API servers do not ask what is no question; the others need not stay
    return response
