"""The HTTPS server that API servers ask (aiohttp).

One path a webhook, POST only. A body is read up to its limit and only once there is room to work on it; who finds too
many waiting is told to come back. The deadline of an answer is the one that the API server names in ``timeout``, less a
margin for the way back: a refusal that says what took too long is better than none.
"""

from __future__ import annotations

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from aiohttp import web

from konverge.clock import Clock
from konverge.errors import ApiError, BadRequestError, TooManyRequestsError
from konverge.runtime.webhooks.answering import answer_admission, answer_conversion
from konverge.runtime.webhooks.hooks import Hooks
from konverge.runtime.webhooks.observing import WebhookObserver

__all__ = ["Limits", "WebhookApplication", "answer_seconds", "served"]

Answering: TypeAlias = Callable[[bytes, float], Awaitable[bytes]]

# An API server takes objects of up to 3 MiB (apiserver, MaxRequestBodyBytes). An update has two, and then some.
_ADMISSION_BYTES = 7 * 1024 * 1024
# Objects of any number come in one review; in practice one, or a page of a list.
_CONVERSION_BYTES = 32 * 1024 * 1024
# The API's default for admission; of a conversion the server does not say how long it waits.
_DEFAULT_SECONDS = 10.0
_CONVERSION_SECONDS = 30.0
_LONGEST_SECONDS = 60.0
_MARGIN_SECONDS = 0.5
_CLIENT_WENT_AWAY = 499
_TIMEOUT = re.compile(r"(?:(\d{1,3})m)?(?:(\d{1,3}(?:\.\d{1,9})?)s)?", re.ASCII)

_log = logging.getLogger("konverge.webhooks")


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes on at once.

    Args:
        concurrent: How many requests are worked on.
        waiting: How many more may wait for that; the next is answered 429.
        admission_bytes: How long an AdmissionReview may be.
        conversion_bytes: How long a ConversionReview may be.
    """

    concurrent: int = 64
    waiting: int = 512
    admission_bytes: int = _ADMISSION_BYTES
    conversion_bytes: int = _CONVERSION_BYTES


class WebhookApplication:
    """Answers the HTTP requests for hooks.

    Args:
        hooks: What is served.
        clock: Measures how long answers take.
        limits: What it takes on at once.
        observer: Hears of each request.

    Attributes:
        in_flight: How many requests are here, those that wait included.
    """

    def __init__(
        self, hooks: Hooks, clock: Clock, *, limits: Limits | None = None, observer: WebhookObserver | None = None
    ) -> None:
        self._limits = limits = limits or Limits()
        self._clock = clock
        self._observer = observer
        self._room = asyncio.Semaphore(limits.concurrent)
        self.in_flight = 0
        # Bodies are read here, each with the limit of its path.
        self.application = web.Application()
        for hook in hooks.admission:
            self._serve(hook.path, partial(answer_admission, hook), limits.admission_bytes, _DEFAULT_SECONDS)
        for conversion in hooks.conversion:
            answering = partial(answer_conversion, conversion)
            self._serve(conversion.path, answering, limits.conversion_bytes, _CONVERSION_SECONDS)
        self.application.router.add_get("/healthz", _healthy)

    def _serve(self, path: str, answering: Answering, most_bytes: int, default_seconds: float) -> None:
        async def handle(request: web.Request) -> web.Response:
            return await self._observed(path, self._answer(request, answering, most_bytes, default_seconds))

        self.application.router.add_post(path, handle)

    async def _observed(self, path: str, answer: Awaitable[web.Response]) -> web.Response:
        begin, code = self._clock.monotonic(), 500
        self.in_flight += 1
        if self._observer is not None:
            self._observer.started(path)
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
                self._observer.finished(path, code, seconds=self._clock.monotonic() - begin)

    async def _answer(
        self, request: web.Request, answering: Answering, most_bytes: int, default_seconds: float
    ) -> web.Response:
        seconds = answer_seconds(request.query.get("timeout", ""), default_seconds)
        try:
            if self.in_flight > self._limits.concurrent + self._limits.waiting:
                raise TooManyRequestsError("too many requests wait already", retry_after_seconds=1)
            begin = self._clock.monotonic()
            deadline = asyncio.timeout(seconds)
            try:
                async with deadline:
                    await self._room.acquire()
            except TimeoutError:
                raise TooManyRequestsError("there was no room in time", retry_after_seconds=1) from None
            try:
                left = max(0.001, seconds - (self._clock.monotonic() - begin))
                body = await _body(request, most_bytes, left)
                left = max(0.001, seconds - (self._clock.monotonic() - begin))
                return web.Response(body=await answering(body, left), content_type="application/json")
            finally:
                self._room.release()
        except ApiError as error:
            return _failure(error)


def answer_seconds(timeout: str, default_seconds: float) -> float:
    """How long an answer may take.

    Args:
        timeout: What the API server says in the query, for example ``10s``.
        default_seconds: When it says nothing, or nothing that can be read.
    """
    found = _TIMEOUT.fullmatch(timeout)
    seconds = 0.0
    if found is not None:
        seconds = 60.0 * int(found[1] or 0) + float(found[2] or 0)
    whole = min(seconds or default_seconds, _LONGEST_SECONDS)
    return whole - min(_MARGIN_SECONDS, whole / 10)


@asynccontextmanager
async def served(
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
        OSError: The port is taken.
    """
    runner = web.AppRunner(
        application.application,
        access_log=None,
        # Nobody waits for an answer any more: the handler need not go on.
        handler_cancellation=True,
        shutdown_timeout=grace_seconds,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host or None, port, ssl_context=context, reuse_address=True)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _body(request: web.Request, most_bytes: int, seconds: float) -> bytes:
    """The whole body, never more than so many bytes of it."""
    if request.content_type != "application/json":
        raise ApiError(
            f"expected Content-Type application/json, found {request.content_type}",
            reason="UnsupportedMediaType",
            code=415,
        )
    too_large = ApiError(f"expected at most {most_bytes} bytes", reason="RequestEntityTooLarge", code=413)
    if (request.content_length or 0) > most_bytes:
        raise too_large
    parts: list[bytes] = []
    length = 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.content.iter_any():
                length += len(part)
                if length > most_bytes:
                    raise too_large
                parts.append(part)
    except TimeoutError:
        raise ApiError("the body did not come in time", reason="Timeout", code=408) from None
    except web.RequestPayloadError as problem:
        raise BadRequestError(f"the body cannot be read: {problem}") from None
    return b"".join(parts)


async def _healthy(request: web.Request) -> web.Response:
    return web.Response(text="ok")


def _failure(error: ApiError) -> web.Response:
    _log.warning("a request was answered %d: %s", error.code, error)
    headers = {}
    if error.retry_after_seconds is not None:
        headers["Retry-After"] = str(int(error.retry_after_seconds))
    return web.Response(status=error.code, text=str(error), headers=headers)
