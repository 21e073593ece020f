"""Sending a request until it succeeds, and saying what a refusal means."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge.backoff import Backoff
from konverge.client.json_decoding import DECODE_ERRORS
from konverge.client.request_observer import RequestObserver
from konverge.client.retries import retry_delay
from konverge.client.server_text_filter import ServerTextFilter
from konverge.client.server_warnings import ServerWarningLog
from konverge.client.transport import Response, StreamingResponse, Transport
from konverge.client.write_permit import WritePermit, current_permit, no_permit_error
from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, ConnectionFailedError
from konverge.kube import Object

__all__ = ["JSON", "Sender", "build_not_json_error", "decode_object"]

JSON = "application/json"

# One request is sent at most so often, and only where repeating it is safe (see `konverge.client.retries`).
_ATTEMPTS = 4
_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=5.0)

_MAX_WORDS = 300


# What may be sent without a permit.
_READS = frozenset({"GET", "HEAD"})

_NO_RESPONSE = "<error>"


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends requests of one user over one transport.

    Args:
        transport: What carries them.
        user_agent: Who asks.
        timeout_seconds: The deadline of a request with its retries, and of a stream's head.
        clock: Measures deadlines and waits between retries.
        entropy: Draws the jitter of those waits.
        observer: Hears of each attempt.
        permit: Is asked before each attempt to write.
        warnings: Hear of what the server warns of.
        texts: Takes values of Secrets out of what the server says, before anybody sees it.
    """

    transport: Transport
    user_agent: str
    timeout_seconds: float
    clock: Clock
    entropy: Entropy
    observer: RequestObserver | None = None
    permit: WritePermit | None = None
    warnings: ServerWarningLog = field(default_factory=ServerWarningLog)
    texts: ServerTextFilter = field(default_factory=ServerTextFilter)

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
            konverge.errors.NoPermitError: It is a write, and may not be sent (any more).
        """
        sent = {"accept": JSON, "user-agent": self.user_agent}
        if body is not None:
            sent["content-type"] = JSON
        sent |= headers
        encoded = None if body is None else msgspec.json.encode(body)
        self.texts.remember_values(path, body)
        deadline = self.clock.monotonic() + self.timeout_seconds
        failures = 0
        while True:
            failure: ApiError | ConnectionFailedError
            try:
                answer = await self._send_once(method, path, _drop_empty(query), sent, encoded, body, deadline)
            except ConnectionFailedError as error:
                failure = error
            else:
                if answer.status < 400:
                    return answer
                failure = self._build_refusal(method, path, answer.status, answer.headers, answer.body, sent=body)
            failures += 1
            pause = retry_delay(
                method, failure, failures=failures, attempts=_ATTEMPTS, backoff=_BACKOFF, entropy=self.entropy
            )
            if pause is None or self.clock.monotonic() + pause >= deadline:
                raise failure
            await self.clock.sleep(pause)
            if self.observer is not None:
                self.observer.on_retry(method, code=_format_code(failure))

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str] = {}
    ) -> AsyncIterator[StreamingResponse]:
        """Open a stream, once; leaving the block closes it.

        Raises:
            konverge.errors.ApiError: The server refused.
            konverge.errors.ConnectionFailedError: There was no answer.
        """
        opening = self.transport.stream(
            "GET",
            path,
            query=_drop_empty(query),
            headers={"accept": JSON, "user-agent": self.user_agent, **headers},
            connect_timeout_seconds=self.timeout_seconds,
        )
        async with AsyncExitStack() as opened:
            with self._observe_attempt("GET", path, b"") as attempt:
                response = await opened.enter_async_context(opening)
                attempt.code = str(response.status)
            self.warnings.process_headers("GET", path, response.headers, self.texts)
            if response.status != 200:
                raise self._build_refusal("GET", path, response.status, response.headers, await response.body())
            yield response

    def _build_refusal(
        self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes, sent: Any = None
    ) -> ApiError:
        error = self.texts.filter_error(_parse_refusal(status, headers, body), path, sent)
        error.request = self._describe_request(method, path)
        return error

    def _describe_request(self, method: str, path: str) -> str:
        """The request as an error names it."""
        return f"{method} {getattr(self.transport, 'server', '')}{path}"

    async def _send_once(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        encoded: bytes | None,
        body: Any,
        deadline: float,
    ) -> Response:
        timeout_seconds = max(0.0, deadline - self.clock.monotonic())
        permit = None if method in _READS else self.permit
        if permit is not None:
            # The server takes a write from whoever sends it, so an answer that we stop waiting for before the permit
            # ends is the most that a lease can promise.
            permitted_seconds = permit.seconds_left()
            if permitted_seconds <= 0:
                raise no_permit_error(method, path)
            timeout_seconds = min(timeout_seconds, permitted_seconds)
        with self._observe_attempt(method, path, encoded or b"", body) as attempt:
            outer = current_permit.set(permit)
            try:
                answer = await self.transport.request(
                    method, path, query=query, headers=headers, body=encoded, timeout_seconds=timeout_seconds
                )
            finally:
                current_permit.reset(outer)
            attempt.code, attempt.received_bytes = str(answer.status), len(answer.body)
        self.warnings.process_headers(method, path, answer.headers, self.texts, body)
        return answer

    @contextmanager
    def _observe_attempt(self, method: str, path: str, encoded: bytes, body: Any = None) -> Iterator[_Attempt]:
        """Tell the observer of an attempt when it has ended, however it ends."""
        attempt = _Attempt()
        begun = self.clock.monotonic()
        try:
            yield attempt
        except ApiError as error:  # a transport raises what the server has against the credentials
            attempt.code = _format_code(error)
            error.request = error.request or self._describe_request(method, path)
            raise self.texts.redact_values(error, path, body) from None
        finally:
            if self.observer is not None:
                self.observer.on_request(
                    method,
                    path,
                    code=attempt.code,
                    seconds=self.clock.monotonic() - begun,
                    sent_bytes=len(encoded),
                    received_bytes=attempt.received_bytes,
                )


@dataclass(slots=True)
class _Attempt:
    """What came of sending a request once."""

    code: str = _NO_RESPONSE
    received_bytes: int = 0


def _format_code(failure: ApiError | ConnectionFailedError) -> str:
    return str(failure.code) if isinstance(failure, ApiError) else _NO_RESPONSE


def decode_object(answer: Response, method: str, path: str) -> Object:
    """The JSON object that an answer holds.

    Raises:
        konverge.errors.ConnectionFailedError: It holds something else.
    """
    try:
        return msgspec.json.decode(answer.body, type=dict)
    except DECODE_ERRORS as error:
        raise build_not_json_error(method, path, error) from error


def build_not_json_error(method: str, path: str, error: Exception) -> ConnectionFailedError:
    """The error for an answer that is of some other server."""
    return ConnectionFailedError(
        f"{method} {path}: this is not an answer of a Kubernetes API server ({error}). Check the server's address"
    )


def _parse_refusal(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """What an answer of 400 or more means."""
    try:
        status: Object = msgspec.json.decode(body, type=dict)
    except DECODE_ERRORS:
        status = {"message": _read_plain_text(headers, body)}  # a proxy's answer, or that of a path nobody serves
    return ApiError.from_status(code, status, retry_after_seconds=_parse_retry_after(headers))


def _read_plain_text(headers: Mapping[str, str], body: bytes) -> str:
    """The first line of a refusal in plain text; a page of HTML says nothing that a message could hold."""
    # A TLS port that is asked without TLS answers a sentence and does not say what it is.
    if not headers.get("content-type", "text/plain").startswith("text/plain"):
        return ""
    return body[:_MAX_WORDS].decode("utf-8", "replace").strip().partition("\n")[0]


def _parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """``Retry-After`` in seconds; its other form, a date, is one that no API server sends."""
    written = headers.get("retry-after", "")
    return float(written) if written.isdecimal() else None


def _drop_empty(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}
