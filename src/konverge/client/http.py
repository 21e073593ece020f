"""The transport over HTTP/1.1, with TLS, credentials and a proxy as a `ClusterConfig` has them.

Watches have connections of their own: each holds one for minutes, and requests must not wait for them. Answers are not
compressed: on the way inside a cluster, that costs more time than it saves.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from konverge.client.cluster import ClusterConfig, Tls
from konverge.client.connection_failures import connection_failure, refused_credentials
from konverge.client.decoding import UNREADABLE
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, ConnectionFailedError, NotConnectedError

__all__ = ["HttpTransport", "ssl_context"]

_MAX_BODY_BYTES = 512 * 1024 * 1024
_MAX_FAILURE_BYTES = 1024 * 1024
_MAX_CONNECTIONS = 64
_MAX_WATCHES = 512
_UNAUTHORIZED = 401

# A peer that vanished without a word is noticed after about a minute, and the way through a NAT stays open.
_KEEPALIVE_IDLE_SECONDS, _KEEPALIVE_INTERVAL_SECONDS, _KEEPALIVE_PROBES = 30, 10, 3

# Connecting alone; the deadline of the whole is that of the caller.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=10.0)

# What aiohttp raises for a request that came to nothing; OSError for what it leaves as it is.
_FAILURES = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class _Response:
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
        self._ssl = ssl_context(config) if config.server.startswith("https:") else False
        self._base = URL(config.server)
        self._sessions: tuple[aiohttp.ClientSession, aiohttp.ClientSession] | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"HttpTransport({self._config.server!r})"

    def with_own_connections(self) -> HttpTransport:
        """A transport to the same server as the same user, with connections of its own, for any event loop."""
        return HttpTransport(self._config, clock=self._clock)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout_seconds: float,
    ) -> _Response:
        """Send one request and wait for its whole answer.

        Raises:
            konverge.errors.UnauthorizedError: The server does not accept the credentials, also not after they were
                read again.
        """
        deadline = self._clock.monotonic() + timeout_seconds
        answer = await self._exchange(method, path, query, headers, body, timeout_seconds)
        if answer.status == _UNAUTHORIZED and self._config.credentials.refused():
            left = max(0.0, deadline - self._clock.monotonic())
            answer = await self._exchange(method, path, query, headers, body, left)
        if answer.status == _UNAUTHORIZED:
            raise refused_credentials(self._config, _message(answer.body), self._clock.now())
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
    ) -> AsyncIterator[_Stream]:
        """Open a stream on a connection of its own.

        Raises:
            konverge.errors.UnauthorizedError: As for `request`.
        """
        found = await self._open(method, path, query, headers, connect_timeout_seconds)
        if found.status == _UNAUTHORIZED and self._config.credentials.refused():
            found.close()
            found = await self._open(method, path, query, headers, connect_timeout_seconds)
        try:
            answer = _Stream(found, self._config, self._clock, connect_timeout_seconds)
            if found.status == _UNAUTHORIZED:
                raise refused_credentials(self._config, _message(await answer.body()), self._clock.now())
            yield answer
        finally:
            found.close()  # not released: what is still coming would have to be read first

    async def close(self) -> None:
        """Close all connections; what is sent afterwards fails."""
        self._is_closed = True
        sessions, self._sessions = self._sessions, None
        for session in sessions or ():
            await session.close()

    async def _exchange(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
        body: bytes | None,
        timeout_seconds: float,
    ) -> _Response:
        requests, _ = self._opened()
        try:
            async with asyncio.timeout(timeout_seconds):
                sent = await self._headers(headers)
                async with requests.request(
                    method, self._url(path, query), headers=sent, data=body, timeout=_TIMEOUT, **self._options()
                ) as found:
                    return _Response(found.status, _lower(found.headers), await _read(found, _MAX_BODY_BYTES))
        except _FAILURES as error:
            now = self._clock.now()
            raise connection_failure(error, self._config, f"{method} {path}", timeout_seconds, now) from error

    async def _open(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], timeout_seconds: float
    ) -> aiohttp.ClientResponse:
        _, streams = self._opened()
        try:
            async with asyncio.timeout(timeout_seconds):
                sent = await self._headers(headers)
                return await streams.request(
                    method, self._url(path, query), headers=sent, timeout=_TIMEOUT, **self._options()
                )
        except _FAILURES as error:
            now = self._clock.now()
            raise connection_failure(error, self._config, f"{method} {path}", timeout_seconds, now) from error

    def _opened(self) -> tuple[aiohttp.ClientSession, aiohttp.ClientSession]:
        if self._is_closed:
            raise NotConnectedError(f"the connection to the API server {self._config.server} has been closed")
        # Not in the constructor: a session belongs to the loop in which it is made.
        if self._sessions is None:
            self._sessions = (
                _session(aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, ssl=self._ssl, socket_factory=_socket)),
                _session(
                    aiohttp.TCPConnector(limit=_MAX_WATCHES, ssl=self._ssl, socket_factory=_socket, force_close=True)
                ),
            )
        return self._sessions

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        return self._base.with_path(self._base.path.rstrip("/") + path).with_query(query)

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = {"allow_redirects": False}  # a redirect would take the credentials elsewhere
        if self._config.proxy_url:
            options["proxy"] = self._config.proxy_url
        if self._config.tls.server_name:
            options["server_hostname"] = self._config.tls.server_name
        return options

    async def _headers(self, headers: Mapping[str, str]) -> CIMultiDict[str]:
        sent = CIMultiDict(headers)
        sent.setdefault("accept-encoding", "identity")
        sent.extend(await self._config.credentials.headers())
        sent.extend(self._config.impersonation)
        return sent


class _Stream:
    """The answer to a request whose body is still coming."""

    def __init__(
        self, found: aiohttp.ClientResponse, config: ClusterConfig, clock: Clock, timeout_seconds: float
    ) -> None:
        self._found = found
        self._config = config
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self.status = found.status
        self.headers: Mapping[str, str] = _lower(found.headers)

    def chunks(self) -> _Stream:
        return self

    def __aiter__(self) -> _Stream:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._found.content.readany()
        except _FAILURES as error:
            raise self._failure(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def body(self) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await _read(self._found, _MAX_FAILURE_BYTES)
        except _FAILURES as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ConnectionFailedError:
        request = f"{self._found.method} {self._found.url.path}"
        return connection_failure(error, self._config, request, self._timeout_seconds, self._clock.now())


def ssl_context(config: ClusterConfig) -> ssl.SSLContext:
    """How to talk TLS to that cluster.

    Raises:
        konverge.errors.ConfigurationError: A certificate or a key is not what it should be.
    """
    tls = config.tls
    if tls.authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the cluster's own authority, and no other
        try:
            context.load_verify_locations(cadata=tls.authority.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError):
            raise ConfigurationError(f"the certificate-authority of {config.source} is not PEM") from None
    else:
        context = ssl.create_default_context()
    # Python 3.13 and later also check what RFC 5280 asks of a CA's extensions. Many clusters' own CAs lack them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate:
        _load_own_certificate(context, tls, config.source)
    return context


def _load_own_certificate(context: ssl.SSLContext, tls: Tls, source: str) -> None:
    def no_password() -> str:
        raise ConfigurationError(f"the client-key of {source} is encrypted; use a key without a password")

    # OpenSSL reads them from files only. The folder is readable by this user alone, and gone when this returns.
    with tempfile.TemporaryDirectory(prefix="konverge-") as folder:
        certificate, key = Path(folder) / "certificate", Path(folder) / "key"
        certificate.write_bytes(tls.certificate)
        key.write_bytes(tls.key)
        try:
            context.load_cert_chain(certificate, key, no_password)
        except ssl.SSLError as error:
            found = "they do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else "they are not PEM"
            raise ConfigurationError(f"cannot use client-certificate and client-key of {source}: {found}") from None


def _session(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


def _socket(address: tuple[Any, ...]) -> socket.socket:
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", _KEEPALIVE_IDLE_SECONDS),
        ("TCP_KEEPINTVL", _KEEPALIVE_INTERVAL_SECONDS),
        ("TCP_KEEPCNT", _KEEPALIVE_PROBES),
    ):
        if hasattr(socket, name):  # the names differ between systems; keepalive itself is on everywhere
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


async def _read(found: aiohttp.ClientResponse, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := await found.content.readany():
        size += len(piece)
        if size > limit:
            found.close()
            raise ConnectionFailedError(f"{found.method} {found.url.path}: the answer is longer than {limit} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _message(body: bytes) -> str:
    """What a refusal says, of whatever form it is."""
    try:
        status = msgspec.json.decode(body, type=dict)
    except UNREADABLE:
        return "Unauthorized"
    return str(status.get("message") or "Unauthorized")
