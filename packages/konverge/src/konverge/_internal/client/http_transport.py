"""The transport over HTTP/1.1, with the TLS, the credentials and the proxy of a `ClusterConfig`.

Watches have separate connections: each uses one for minutes, and requests must not wait for them. Responses are not
compressed: inside a cluster, compression costs more time than it saves.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from konverge._internal.aiohttp_errors import AIOHTTP_ERRORS, ConnectionBrokenError, send_once
from konverge._internal.client.config import ClusterConfig
from konverge._internal.client.connection_errors import (
    build_connection_error,
    build_unauthorized_error,
    may_quote_response,
)
from konverge._internal.client.credentials import Identity
from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.server_url import find_url_error, redact_url
from konverge._internal.client.socket_factory import SocketFactory, send_guard
from konverge._internal.client.tls_contexts import TlsContexts
from konverge._internal.client.write_permit import WritePermit, current_permit, no_permit_error
from konverge.clock import Clock, SystemClock
from konverge.errors import (
    ConfigurationError,
    ConnectionFailedError,
    KonvergeError,
    NotConnectedError,
    UntrustedServerError,
)

__all__ = ["HttpTransport"]

_MAX_BODY_BYTES = 512 * 1024 * 1024
_MAX_FAILURE_BYTES = 1024 * 1024
_MAX_CONNECTIONS = 64
_MAX_WATCHES = 512
_UNAUTHORIZED = 401

# These methods may be sent late: they change nothing.
_READS = frozenset({"GET", "HEAD"})

# Only for connecting; the caller has a deadline for the whole request.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10.0)


@dataclass(frozen=True, slots=True)
class _HttpResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpTransport:
    """Requests and streams to one API server as one user.

    It may be created anywhere, and is used in one event loop; it connects on first use.

    Args:
        config: The cluster and the user.
        clock: The source of time, to report expired certificates.

    Raises:
        konverge.errors.ConfigurationError: A certificate, a key or a URL is invalid.
    """

    def __init__(self, config: ClusterConfig, *, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        self._tls = TlsContexts(config.tls, config.source, self._clock) if config.server.startswith("https:") else None
        for url, may_have_user in ((config.server, False), (config.proxy_url, True)):
            problem = find_url_error(url, may_have_user=may_have_user) if url else ""
            if problem:
                raise ConfigurationError(f"cannot use {redact_url(url)} ({config.source}): {problem}")
        self._base = URL(config.server)
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None = None
        self._sockets = SocketFactory()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._config.server!r})"

    def with_own_connections(self) -> HttpTransport:
        """Return a transport to the same server as the same user, with separate connections, for any event loop."""
        return HttpTransport(
            replace(self._get_current_config(), credentials=self._config.credentials.clone()), clock=self._clock
        )

    @property
    def server(self) -> str:
        """The URL of the server, redacted for messages."""
        return redact_url(self._config.server)

    @property
    def host(self) -> str:
        """The host and port of the server."""
        return self._base.authority

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> _HttpResponse:
        """Send one request and wait for the whole response.

        Raises:
            konverge.errors.UnauthorizedError: The server rejects the credentials, even after a renewal.
            konverge.errors.ConfigurationError: There are no valid credentials.
            konverge.errors.NoPermitError: The permit ended before the request was sent.
        """
        requests, _ = self._open_sessions()
        deadline = _get_loop_time() + timeout_seconds
        response = await self._send(requests, method, path, query, headers, body, deadline, timeout_seconds)
        try:
            async with asyncio.timeout_at(deadline):
                whole = _HttpResponse(
                    response.status, _lower_names(response.headers), await _read_body(response, _MAX_BODY_BYTES)
                )
        except AIOHTTP_ERRORS as error:
            _discard_response(response)
            raise self._build_failure(error, method, path, timeout_seconds) from _find_cause(error)
        except BaseException:
            _discard_response(response)  # after a cancellation or an excess, the connection cannot be reused
            raise
        if whole.status == _UNAUTHORIZED:
            raise build_unauthorized_error(self._get_current_config(), _parse_message(whole.body), self._clock.now())
        return whole

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        connect_timeout_seconds: float,
    ) -> AsyncIterator[_HttpStream]:
        """Open a stream on a separate connection.

        Raises:
            konverge.errors.UnauthorizedError: The same as for `request`.
            konverge.errors.ConfigurationError: There are no valid credentials.
        """
        _, streams = self._open_sessions()
        deadline = _get_loop_time() + connect_timeout_seconds
        response = await self._send(streams, method, path, query, headers, None, deadline, connect_timeout_seconds)
        try:
            stream = _HttpStream(response, self._build_failure, connect_timeout_seconds)
            if response.status == _UNAUTHORIZED:
                raise build_unauthorized_error(
                    self._get_current_config(), _parse_message(await stream.body()), self._clock.now()
                )
            yield stream
        finally:
            _discard_response(response)  # not released: a release would have to read the rest of the body first

    async def close(self) -> None:
        """Close all connections; later requests fail."""
        self._is_closed = True
        sessions, self._sessions = self._sessions, None
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._sockets.close_all)  # runs last, even if the close is cancelled
            for session in sessions or ():
                stack.push_async_callback(session.close)

    async def _send(
        self,
        session: aiohttp.ClientSession,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        deadline: float,
        timeout_seconds: float,
    ) -> aiohttp.ClientResponse:
        """Send a request and return the head of the response; retry once with newer credentials or certificates.

        A failed handshake and a rejected user have no effect on the server, so the retry is safe for a write too.
        """
        for may_try_again in (True, False):
            identity = await self._get_identity(deadline, timeout_seconds)
            context = await self._tls.get_context(identity) if self._tls is not None else False
            # A write without a body gets an empty one, so that its head too waits for the checks of the body.
            deadline_body = None
            if body is not None or method not in _READS:
                deadline_body = _DeadlineBody(body or b"", deadline, timeout_seconds, current_permit.get())
            try:
                async with asyncio.timeout_at(deadline):
                    response = await session.request(
                        method,
                        self._build_url(path, query),
                        headers=self._build_headers(headers, identity),
                        data=deadline_body,
                        ssl=context,
                        timeout=_TIMEOUT,
                        **self._build_options(),
                    )
            except AIOHTTP_ERRORS as error:
                if deadline_body is not None and deadline_body.is_forbidden:
                    raise no_permit_error(method, path) from None
                cause = error.cause if isinstance(error, ConnectionBrokenError) else error
                failure = self._build_failure(cause, method, path, timeout_seconds)
                is_distrust = may_try_again and isinstance(failure, UntrustedServerError)
                if is_distrust and await self._has_newer_certificates(context):
                    continue
                raise failure from _find_cause(cause)
            except Exception as error:
                # An unexpected error: the request may have been sent. The error's text might quote a header.
                raise ConnectionFailedError(
                    f"{method} {path}: cannot be sent to the API server {self._config.server}: {type(error).__name__} "
                    f"({self._config.source})"
                ) from error
            if response.status != _UNAUTHORIZED or not may_try_again:
                return response
            if not (self._config.credentials.invalidate(identity) or await self._has_newer_certificates(context)):
                return response
            _discard_response(response)
        raise AssertionError("unreachable: the second attempt returns or raises")

    async def _get_identity(self, deadline: float, timeout_seconds: float) -> Identity:
        credentials = self._config.credentials
        try:
            async with asyncio.timeout_at(deadline):
                return await credentials.get_identity()
        except TimeoutError:
            raise NotConnectedError(
                f"{credentials.description}: no credentials within {timeout_seconds:g} s ({self._config.source}); "
                "no request was sent"
            ) from None
        except KonvergeError:
            raise
        except Exception as error:  # the caller expects errors of `konverge.errors` from any credentials
            raise NotConnectedError(
                f"{credentials.description}: cannot get the credentials ({self._config.source}): {type(error).__name__}"
            ) from error

    async def _has_newer_certificates(self, used: ssl.SSLContext | bool) -> bool:
        return self._tls is not None and isinstance(used, ssl.SSLContext) and await self._tls.reload(used)

    def _get_current_config(self) -> ClusterConfig:
        """Return the configuration with the present certificates."""
        return self._config if self._tls is None else replace(self._config, tls=self._tls.current)

    def _build_failure(self, error: Exception, method: str, path: str, timeout_seconds: float) -> ConnectionFailedError:
        return build_connection_error(
            error, self._get_current_config(), f"{method} {path}", timeout_seconds, self._clock.now()
        )

    def _open_sessions(self) -> tuple[aiohttp.ClientSession, aiohttp.ClientSession]:
        if self._is_closed:
            raise NotConnectedError(f"the connection to the API server {self._config.server} has been closed")
        # Not in the constructor: a session belongs to the event loop in which it is created.
        if self._sessions is None:
            self._sessions = (
                _build_session(aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, socket_factory=self._sockets)),
                _build_session(
                    aiohttp.TCPConnector(limit=_MAX_WATCHES, socket_factory=self._sockets, force_close=True)
                ),
            )
        return self._sessions

    def _build_url(self, path: str, query: Mapping[str, str]) -> URL:
        return self._base.with_path(self._base.path.rstrip("/") + path).with_query(query)

    def _build_options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"allow_redirects": False}  # a redirect would send the credentials to another server
        if self._config.proxy_url:
            options["proxy"] = self._config.proxy_url
        if self._config.tls.server_name:
            options["server_hostname"] = self._config.tls.server_name
        return options

    def _build_headers(self, headers: Mapping[str, str], identity: Identity) -> CIMultiDict[str]:
        sent = CIMultiDict(headers)
        sent.setdefault("accept-encoding", "identity")
        sent.extend(identity.headers)
        sent.extend(self._config.impersonation)
        return sent


class _DeadlineBody(aiohttp.BytesPayload):
    """A body that is never sent after its deadline or its permit; neither is the head, which waits for the body.

    The timeout of a request fires only when the event loop runs. A process that was frozen, or whose loop was blocked,
    first runs its ready callbacks. One of them may send a write, minutes after the Lease that allowed it was lost. The
    deadline alone does not prevent that: the process may be frozen between the check of the permit and the computation
    of the deadline.

    Attributes:
        is_forbidden: Whether the body was not sent completely because the permit had ended.
    """

    def __init__(self, body: bytes, deadline: float, timeout_seconds: float, permit: WritePermit | None) -> None:
        # A body above 1 MiB in the constructor causes a ResourceWarning, which a user may turn into an error. The
        # server limits the size of a request, and a few megabytes are written in milliseconds.
        super().__init__(b"")
        self._value, self._size = body, len(body)
        self._deadline = deadline
        self._timeout_seconds = timeout_seconds
        self._permit = permit
        self.is_forbidden = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._check()
        if _get_loop_time() >= self._deadline:
            raise TimeoutError(f"not sent within {self._timeout_seconds:g} s")
        with send_guard(self._check):
            await super().write_with_length(writer, content_length)

    def _check(self) -> None:
        if self._permit is not None and self._permit.seconds_left() <= 0:
            self.is_forbidden = True
            raise TimeoutError("not sent: the permit has ended")


class _HttpStream:
    """The response to a request, with a body that is still arriving."""

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        build_failure: Callable[[Exception, str, str, float], ConnectionFailedError],
        timeout_seconds: float,
    ) -> None:
        self._response = response
        self._build_failure = build_failure
        self._timeout_seconds = timeout_seconds
        self.status = response.status
        self.headers: Mapping[str, str] = _lower_names(response.headers)

    def chunks(self) -> _HttpStream:
        return self

    def __aiter__(self) -> _HttpStream:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._response.content.readany()
        except AIOHTTP_ERRORS as error:
            raise self._build_error(error) from _find_cause(error)
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def body(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await _read_body(self._response, _MAX_FAILURE_BYTES)
        except AIOHTTP_ERRORS as error:
            raise self._build_error(error) from _find_cause(error)

    def _build_error(self, error: Exception) -> ConnectionFailedError:
        response = self._response
        return self._build_failure(error, response.method, response.url.path, self._timeout_seconds)


def _build_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), middlewares=(send_once,))


def _discard_response(response: aiohttp.ClientResponse) -> None:
    """Close an unfinished response and its connection at once.

    A graceful close of a TLS connection waits half a minute for the other side, which never responds on a dead link.
    The connection would outlive its client, and each broken watch would hold a socket for that time.
    """
    transport = response.connection.transport if response.connection is not None else None
    response.close()
    if transport is not None:
        transport.abort()


async def _read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await response.content.readany():
        size += len(piece)
        if size > limit:
            _discard_response(response)
            raise ConnectionFailedError(
                f"{response.method} {response.url.path}: the response is too long: expected at most {limit} bytes"
            )
        pieces.append(piece)
    return b"".join(pieces)


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with names in lower case; repeated headers are joined as in HTTP."""
    joined: dict[str, str] = {}
    for name, value in headers.items():
        name = name.lower()
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def _find_cause(error: Exception) -> Exception | None:
    """Return the error as the cause for tracebacks; None if its text may quote received bytes."""
    return None if may_quote_response(error) else error


def _get_loop_time() -> float:
    return asyncio.get_running_loop().time()


def _parse_message(body: bytes) -> str:
    """Parse the message of an error response in any form."""
    try:
        status = msgspec.json.decode(body, type=dict)
    except DECODE_ERRORS:
        return "Unauthorized"
    return str(status.get("message") or "Unauthorized")
