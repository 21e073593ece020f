"""The transport over HTTP/1.1, with TLS, credentials and a proxy as a `ClusterConfig` has them.

Watches have connections of their own: each holds one for minutes, and requests must not wait for them. Answers are not
compressed: on the way inside a cluster, that costs more time than it saves.
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

from konverge.aiohttp_errors import AIOHTTP_ERRORS, ConnectionBrokenError, send_once
from konverge.client.config import ClusterConfig
from konverge.client.connection_errors import build_connection_error, build_unauthorized_error, may_quote_response
from konverge.client.credentials import Identity
from konverge.client.json_decoding import DECODE_ERRORS
from konverge.client.server_url import find_url_error, redact_url
from konverge.client.socket_factory import SocketFactory, send_guard
from konverge.client.tls_contexts import TlsContexts
from konverge.client.write_permit import WritePermit, current_permit, no_permit_error
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

# What may be sent late: it changes nothing.
_READS = frozenset({"GET", "HEAD"})

# Connecting alone; the deadline of the whole is that of the caller.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10.0)


@dataclass(frozen=True, slots=True)
class _HttpResponse:
    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpTransport:
    """Requests and streams to one API server as one user.

    Made anywhere, used in one event loop; it connects on first need.

    Args:
        config: The cluster and the user.
        clock: Tells in messages whether a certificate has expired.

    Raises:
        konverge.errors.ConfigurationError: A certificate or a key cannot be used.
    """

    def __init__(self, config: ClusterConfig, *, clock: Clock | None = None) -> None:
        self._config = config
        self._clock = clock or SystemClock()
        self._tls = TlsContexts(config.tls, config.source, self._clock) if config.server.startswith("https:") else None
        for url, may_have_user in ((config.server, False), (config.proxy_url, True)):
            mistake = find_url_error(url, may_have_user=may_have_user) if url else ""
            if mistake:
                raise ConfigurationError(f"cannot use {redact_url(url)} ({config.source}): {mistake}")
        self._base = URL(config.server)
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None = None
        self._sockets = SocketFactory()
        self._is_closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._config.server!r})"

    def with_own_connections(self) -> HttpTransport:
        """A transport to the same server as the same user, with connections of its own, for any event loop."""
        return HttpTransport(
            replace(self._get_current_config(), credentials=self._config.credentials.clone()), clock=self._clock
        )

    @property
    def server(self) -> str:
        """The server's address, as messages may show it."""
        return redact_url(self._config.server)

    @property
    def host(self) -> str:
        """The server's host and port."""
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
        """Send one request and wait for its whole answer.

        Raises:
            konverge.errors.UnauthorizedError: The server does not accept the credentials, also not after they were
                renewed.
            konverge.errors.ConfigurationError: There are no credentials.
            konverge.errors.NoPermitError: Its permit had ended when it was about to be sent.
        """
        requests, _ = self._open_sessions()
        deadline = _get_loop_time() + timeout_seconds
        found = await self._send(requests, method, path, query, headers, body, deadline, timeout_seconds)
        try:
            async with asyncio.timeout_at(deadline):
                answer = _HttpResponse(
                    found.status, _lower_names(found.headers), await _read_body(found, _MAX_BODY_BYTES)
                )
        except AIOHTTP_ERRORS as error:
            _discard_response(found)
            raise self._build_failure(error, method, path, timeout_seconds) from _find_cause(error)
        except BaseException:
            _discard_response(found)  # cancelled, or too long: the connection is of no use to others
            raise
        if answer.status == _UNAUTHORIZED:
            raise build_unauthorized_error(self._get_current_config(), _parse_message(answer.body), self._clock.now())
        return answer

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
        """Open a stream on a connection of its own.

        Raises:
            konverge.errors.UnauthorizedError: As for `request`.
            konverge.errors.ConfigurationError: There are no credentials.
        """
        _, streams = self._open_sessions()
        deadline = _get_loop_time() + connect_timeout_seconds
        found = await self._send(streams, method, path, query, headers, None, deadline, connect_timeout_seconds)
        try:
            answer = _HttpStream(found, self._build_failure, connect_timeout_seconds)
            if found.status == _UNAUTHORIZED:
                raise build_unauthorized_error(
                    self._get_current_config(), _parse_message(await answer.body()), self._clock.now()
                )
            yield answer
        finally:
            _discard_response(found)  # not released: what is still coming would have to be read first

    async def close(self) -> None:
        """Close all connections; what is sent afterwards fails."""
        self._is_closed = True
        sessions, self._sessions = self._sessions, None
        async with AsyncExitStack() as all_of_them:
            all_of_them.push_async_callback(self._sockets.close_all)  # last, and also when closing is cancelled
            for session in sessions or ():
                all_of_them.push_async_callback(session.close)

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
        """The head of the answer. What the server does not trust us with is sent again if there is something newer.

        Neither a failed handshake nor a refused user has done anything, so that is as safe for a write as for a read.
        """
        for may_try_again in (True, False):
            identity = await self._get_identity(deadline, timeout_seconds)
            context = await self._tls.get_context(identity) if self._tls is not None else False
            # A write without a body gets an empty one: its head is then not sent before that is asked for either.
            timely = None
            if body is not None or method not in _READS:
                timely = _DeadlineBody(body or b"", deadline, timeout_seconds, current_permit.get())
            try:
                async with asyncio.timeout_at(deadline):
                    found = await session.request(
                        method,
                        self._build_url(path, query),
                        headers=self._build_headers(headers, identity),
                        data=timely,
                        ssl=context,
                        timeout=_TIMEOUT,
                        **self._build_options(),
                    )
            except AIOHTTP_ERRORS as error:
                if timely is not None and timely.is_forbidden:
                    raise no_permit_error(method, path) from None
                cause = error.cause if isinstance(error, ConnectionBrokenError) else error
                failure = self._build_failure(cause, method, path, timeout_seconds)
                is_distrust = may_try_again and isinstance(failure, UntrustedServerError)
                if is_distrust and await self._has_newer_certificates(context):
                    continue
                raise failure from _find_cause(cause)
            except Exception as error:
                # Nothing that is known of, so whether it was sent is not known either. Its words might quote a header.
                raise ConnectionFailedError(
                    f"{method} {path}: cannot be sent to the API server {self._config.server}: {type(error).__name__} "
                    f"({self._config.source})"
                ) from error
            if found.status != _UNAUTHORIZED or not may_try_again:
                return found
            if not (self._config.credentials.invalidate(identity) or await self._has_newer_certificates(context)):
                return found
            _discard_response(found)
        raise AssertionError("the second attempt ends in one way or another")

    async def _get_identity(self, deadline: float, timeout_seconds: float) -> Identity:
        credentials = self._config.credentials
        try:
            async with asyncio.timeout_at(deadline):
                return await credentials.get_identity()
        except TimeoutError:
            raise NotConnectedError(
                f"{credentials.description} did not come within {timeout_seconds:g} s ({self._config.source}): "
                "nothing was sent"
            ) from None
        except KonvergeError:
            raise
        except Exception as error:  # whoever sends expects what is in the tree of errors, whatever credentials raise
            raise NotConnectedError(
                f"{credentials.description} cannot be had ({self._config.source}): {type(error).__name__}"
            ) from error

    async def _has_newer_certificates(self, used: ssl.SSLContext | bool) -> bool:
        return self._tls is not None and isinstance(used, ssl.SSLContext) and await self._tls.reload(used)

    def _get_current_config(self) -> ClusterConfig:
        """The cluster with the certificates of now."""
        return self._config if self._tls is None else replace(self._config, tls=self._tls.current)

    def _build_failure(self, error: Exception, method: str, path: str, timeout_seconds: float) -> ConnectionFailedError:
        return build_connection_error(
            error, self._get_current_config(), f"{method} {path}", timeout_seconds, self._clock.now()
        )

    def _open_sessions(self) -> tuple[aiohttp.ClientSession, aiohttp.ClientSession]:
        if self._is_closed:
            raise NotConnectedError(f"the connection to the API server {self._config.server} has been closed")
        # Not in the constructor: a session belongs to the loop in which it is made.
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
        options: dict[str, Any] = {"allow_redirects": False}  # a redirect would take the credentials elsewhere
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
    """A body that is not sent after its deadline or its permit, and the head that waits for it neither.

    The time-out of a request fires when the event loop gets to it. A process that was frozen and goes on, or whose loop
    was blocked, does first what was ready, and that may be to send what it was about to send: a write, minutes after
    the Lease that allowed it was lost. The deadline does not show that alone: the process may have been frozen after
    the permit was asked and before the deadline was reckoned from its answer.

    Attributes:
        is_forbidden: Whether the body was not sent, or not to its end, since the permit had ended.
    """

    def __init__(self, body: bytes, deadline: float, timeout_seconds: float, permit: WritePermit | None) -> None:
        # Given there, a body above 1 MiB makes a ResourceWarning, which an error may be made of. The limit of a request
        # is the server's to know, and a few megabytes are written in milliseconds.
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
    """The answer to a request whose body is still coming."""

    def __init__(
        self,
        found: aiohttp.ClientResponse,
        failure: Callable[[Exception, str, str, float], ConnectionFailedError],
        timeout_seconds: float,
    ) -> None:
        self._found = found
        self._failure = failure
        self._timeout_seconds = timeout_seconds
        self.status = found.status
        self.headers: Mapping[str, str] = _lower_names(found.headers)

    def chunks(self) -> _HttpStream:
        return self

    def __aiter__(self) -> _HttpStream:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._found.content.readany()
        except AIOHTTP_ERRORS as error:
            raise self._build_error(error) from _find_cause(error)
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def body(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await _read_body(self._found, _MAX_FAILURE_BYTES)
        except AIOHTTP_ERRORS as error:
            raise self._build_error(error) from _find_cause(error)

    def _build_error(self, error: Exception) -> ConnectionFailedError:
        return self._failure(error, self._found.method, self._found.url.path, self._timeout_seconds)


def _build_session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), middlewares=(send_once,))


def _discard_response(found: aiohttp.ClientResponse) -> None:
    """Let go of an answer that has not ended, and of its connection at once.

    To close a TLS connection politely is to wait half a minute for the other side's goodbye, which a dead link never
    carries: it would outlive its client, and each watch that broke would hold a socket for so long.
    """
    transport = found.connection.transport if found.connection is not None else None
    found.close()
    if transport is not None:
        transport.abort()


async def _read_body(found: aiohttp.ClientResponse, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await found.content.readany():
        size += len(piece)
        if size > limit:
            _discard_response(found)
            raise ConnectionFailedError(f"{found.method} {found.url.path}: the answer is longer than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers by names in lower case; one that came several times is joined, as HTTP has it."""
    found: dict[str, str] = {}
    for name, value in headers.items():
        name = name.lower()
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _find_cause(error: Exception) -> Exception | None:
    """The error for tracebacks, unless its words repeat what was received."""
    return None if may_quote_response(error) else error


def _get_loop_time() -> float:
    return asyncio.get_running_loop().time()


def _parse_message(body: bytes) -> str:
    """What a refusal says, of whatever form it is."""
    try:
        status = msgspec.json.decode(body, type=dict)
    except DECODE_ERRORS:
        return "Unauthorized"
    return str(status.get("message") or "Unauthorized")
