"""Sending a request until it succeeds, and saying what a refusal means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from konverge.client.decoding import UNREADABLE
from konverge.client.retries import Backoff, pause_before_retry
from konverge.client.transport import Response, StreamingResponse, Transport
from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, ConnectionFailedError
from konverge.kube import Object

__all__ = ["JSON", "Sender", "decode_object", "not_json"]

JSON = "application/json"

# One request is sent at most so often, and only where repeating it is safe (see `konverge.client.retries`).
_ATTEMPTS = 4
_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=5.0)

_MAX_WORDS = 300


class Sender:
    """Sends requests of one user over one transport.

    Args:
        transport: What carries them.
        user_agent: Who asks.
        timeout_seconds: The deadline of a request with its retries, and of a stream's head.
        clock: Measures deadlines and waits between retries.
        entropy: Draws the jitter of those waits.
    """

    def __init__(
        self, transport: Transport, *, user_agent: str, timeout_seconds: float, clock: Clock, entropy: Entropy
    ) -> None:
        self._transport = transport
        self._user_agent = user_agent
        self._timeout_seconds = timeout_seconds
        self._clock = clock
        self._entropy = entropy

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: Any = None,
    ) -> Response:
        """Send a request until its answer is below 400, it may not be repeated, or the deadline passes.

        Args:
            method: The HTTP method.
            path: The path.
            query: The query; empty values are left out.
            headers: Besides, or instead of, ``accept``, ``content-type`` and ``user-agent``.
            body: What is sent as JSON; None for nothing.

        Raises:
            konverge.errors.ApiError: The server refused.
            konverge.errors.ConnectionFailedError: There was no answer.
        """
        sent = {"accept": JSON, "user-agent": self._user_agent}
        if body is not None:
            sent["content-type"] = JSON
        sent |= headers
        encoded = None if body is None else msgspec.json.encode(body)
        deadline = self._clock.monotonic() + self._timeout_seconds
        failures = 0
        while True:
            failure: ApiError | ConnectionFailedError
            try:
                answer = await self._transport.request(
                    method,
                    path,
                    query=_present(query),
                    headers=sent,
                    body=encoded,
                    timeout_seconds=max(0.0, deadline - self._clock.monotonic()),
                )
            except ConnectionFailedError as error:
                failure = error
            else:
                if answer.status < 400:
                    return answer
                failure = _refusal(answer.status, answer.headers, answer.body)
            failures += 1
            pause = pause_before_retry(
                method, failure, failures=failures, attempts=_ATTEMPTS, backoff=_BACKOFF, entropy=self._entropy
            )
            if pause is None or self._clock.monotonic() + pause >= deadline:
                raise failure
            await self._clock.sleep(pause)

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str]) -> AsyncIterator[StreamingResponse]:
        """Open a stream, once; leaving the block closes it.

        Raises:
            konverge.errors.ApiError: The server refused.
            konverge.errors.ConnectionFailedError: There was no answer.
        """
        opening = self._transport.stream(
            "GET",
            path,
            query=_present(query),
            headers={"accept": JSON, "user-agent": self._user_agent},
            connect_timeout_seconds=self._timeout_seconds,
        )
        async with opening as response:
            if response.status != 200:
                raise _refusal(response.status, response.headers, await response.body())
            yield response


def decode_object(answer: Response, method: str, path: str) -> Object:
    """The JSON object that an answer holds.

    Raises:
        konverge.errors.ConnectionFailedError: It holds something else.
    """
    try:
        return msgspec.json.decode(answer.body, type=dict)
    except UNREADABLE as error:
        raise not_json(method, path, error) from error


def not_json(method: str, path: str, error: Exception) -> ConnectionFailedError:
    """The error for an answer that is of some other server."""
    return ConnectionFailedError(
        f"{method} {path}: this is not an answer of a Kubernetes API server ({error}). Check the server's address"
    )


def _refusal(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """What an answer of 400 or more means."""
    try:
        status: Object = msgspec.json.decode(body, type=dict)
    except UNREADABLE:
        status = {"message": _plain_words(headers, body)}  # a proxy's answer, or that of a path nobody serves
    return ApiError.from_status(code, status, retry_after_seconds=_retry_after(headers))


def _plain_words(headers: Mapping[str, str], body: bytes) -> str:
    """The first line of a refusal in plain text; a page of HTML says nothing that a message could hold."""
    # A TLS port that is asked without TLS answers a sentence and does not say what it is.
    if not headers.get("content-type", "text/plain").startswith("text/plain"):
        return ""
    return body[:_MAX_WORDS].decode("utf-8", "replace").strip().partition("\n")[0]


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """``Retry-After`` in seconds; its other form, a date, is one that no API server sends."""
    written = headers.get("retry-after", "")
    return float(written) if written.isdecimal() else None


def _present(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}
