"""The sender of requests: it retries them where that is safe, and turns error responses into typed errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge._internal.backoff import Backoff
from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.request_observer import RequestObserver
from konverge._internal.client.retries import retry_delay
from konverge._internal.client.server_text_filter import ServerTextFilter
from konverge._internal.client.server_warnings import ServerWarningLog
from konverge._internal.client.transport import Response, StreamingResponse, Transport
from konverge._internal.client.write_permit import WritePermit, current_permit, no_permit_error
from konverge._internal.kube import Object
from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, ConnectionFailedError

__all__ = ["JSON", "Sender", "build_not_json_error", "decode_object"]

JSON = "application/json"

# The maximum number of attempts of a request that is safe to repeat (see `client.retries`).
_ATTEMPTS = 4
_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=5.0)

_MAX_PLAIN_TEXT = 300


# These methods need no permit.
_READS = frozenset({"GET", "HEAD"})

_NO_RESPONSE = "<error>"


@dataclass(frozen=True, slots=True)
class Sender:
    """A sender of one user's requests over one transport.

    Args:
        transport: The transport for the requests.
        user_agent: The user agent.
        timeout_seconds: The deadline of a request with its retries, and of a stream's head.
        clock: The source of time.
        entropy: The source of jitter.
        observer: The observer of each attempt.
        permit: The permit to check before each attempt to write.
        warnings: The log of the server's warnings.
        texts: The filter that removes values of Secrets from the server's texts.
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
        """Send a request until the status is below 400, a repetition is not safe, or the deadline passes.

        Args:
            method: The HTTP method.
            path: The path.
            query: The query; empty values are left out.
            headers: Headers that extend or replace ``accept``, ``content-type`` and ``user-agent``.
            body: The body, which is sent as JSON; None for no body.

        Raises:
            konverge.errors.ApiError: The server rejected the request.
            konverge.errors.ConnectionFailedError: There was no response.
            konverge.errors.NoPermitError: The request is a write without a valid permit.
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
                response = await self._send_once(method, path, _drop_empty(query), sent, encoded, body, deadline)
            except ConnectionFailedError as error:
                failure = error
            else:
                if response.status < 400:
                    return response
                failure = self._build_refusal(method, path, response.status, response.headers, response.body, sent=body)
            failures += 1
            delay = retry_delay(
                method, failure, failures=failures, attempts=_ATTEMPTS, backoff=_BACKOFF, entropy=self.entropy
            )
            if delay is None or self.clock.monotonic() + delay >= deadline:
                raise failure
            await self.clock.sleep(delay)
            if self.observer is not None:
                self.observer.on_retry(method, code=_format_code(failure))

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Mapping[str, str] = {}
    ) -> AsyncIterator[StreamingResponse]:
        """Open a stream without retries; leaving the block closes it.

        Raises:
            konverge.errors.ApiError: The server rejected the request.
            konverge.errors.ConnectionFailedError: There was no response.
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
        """Describe the request for errors."""
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
            # The server accepts a write from any replica. So the client stops waiting for the response before the
            # permit ends; a Lease cannot guarantee more.
            permitted_seconds = permit.seconds_left()
            if permitted_seconds <= 0:
                raise no_permit_error(method, path)
            timeout_seconds = min(timeout_seconds, permitted_seconds)
        with self._observe_attempt(method, path, encoded or b"", body) as attempt:
            outer = current_permit.set(permit)
            try:
                response = await self.transport.request(
                    method, path, query=query, headers=headers, body=encoded, timeout_seconds=timeout_seconds
                )
            finally:
                current_permit.reset(outer)
            attempt.code, attempt.received_bytes = str(response.status), len(response.body)
        self.warnings.process_headers(method, path, response.headers, self.texts, body)
        return response

    @contextmanager
    def _observe_attempt(self, method: str, path: str, encoded: bytes, body: Any = None) -> Iterator[_Attempt]:
        """Report the attempt within the block to the observer, whether it succeeds or fails."""
        attempt = _Attempt()
        started_at = self.clock.monotonic()
        try:
            yield attempt
        except ApiError as error:  # a transport raises it if the server rejects the credentials
            attempt.code = _format_code(error)
            error.request = error.request or self._describe_request(method, path)
            raise self.texts.redact_values(error, path, body) from None
        finally:
            if self.observer is not None:
                self.observer.on_request(
                    method,
                    path,
                    code=attempt.code,
                    seconds=self.clock.monotonic() - started_at,
                    sent_bytes=len(encoded),
                    received_bytes=attempt.received_bytes,
                )


@dataclass(slots=True)
class _Attempt:
    """The result of one attempt to send a request."""

    code: str = _NO_RESPONSE
    received_bytes: int = 0


def _format_code(failure: ApiError | ConnectionFailedError) -> str:
    return str(failure.code) if isinstance(failure, ApiError) else _NO_RESPONSE


def decode_object(response: Response, method: str, path: str) -> Object:
    """Decode the JSON object in a response.

    Raises:
        konverge.errors.ConnectionFailedError: The body is not a JSON object.
    """
    try:
        return msgspec.json.decode(response.body, type=dict)
    except DECODE_ERRORS as error:
        raise build_not_json_error(method, path, error) from error


def build_not_json_error(method: str, path: str, error: Exception) -> ConnectionFailedError:
    """Build the error for a response that is not from an API server."""
    return ConnectionFailedError(
        f"{method} {path}: expected the response of a Kubernetes API server, found other content ({error}). "
        "Check the server's address"
    )


def _parse_refusal(code: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    """Parse the error in a response with status 400 or above."""
    try:
        status: Object = msgspec.json.decode(body, type=dict)
    except DECODE_ERRORS:
        status = {"message": _read_plain_text(headers, body)}  # from a proxy, or for a path that is not served
    return ApiError.from_status(code, status, retry_after_seconds=_parse_retry_after(headers))


def _read_plain_text(headers: Mapping[str, str], body: bytes) -> str:
    """Return the first line of an error in plain text; empty for HTML, which is unsuitable for a message."""
    # A TLS port returns plain text without a content type for a request without TLS.
    if not headers.get("content-type", "text/plain").startswith("text/plain"):
        return ""
    return body[:_MAX_PLAIN_TEXT].decode("utf-8", "replace").strip().partition("\n")[0]


def _parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Parse ``Retry-After`` in seconds; no API server sends its other form, a date."""
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def _drop_empty(query: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}
