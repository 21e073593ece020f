"""HTTP to addresses that others name, with limits on destinations, disclosed headers and response sizes.

Every hop is checked before its connection opens, for the first request and each redirect: first its URL by a
`HopCheck`, then the address of the connection. This module follows redirects itself, never from TLS to none. Headers
for one origin (a credential and most others) are never sent to another origin, nor restored when a redirect returns to
the first. Bodies have a limit, both compressed and decompressed. There are no cookies, no retries, no environment
variables and no timeouts: the caller has a deadline and cancels, which closes the connection of the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
from yarl import URL

from konverge._internal.aiohttp_errors import AIOHTTP_ERRORS, ConnectionBrokenError, send_once
from konverge_resolution._internal.fetch_progress import FetchProgress
from konverge_resolution._internal.network.allowed_networks import AllowedNetworks, is_address
from konverge_resolution._internal.network.connection_pools import (
    IDLE_SECONDS,
    ConnectionPools,
    OpenConnections,
    PoolKey,
)
from konverge_resolution._internal.network.content_encoding import DecompressionError, create_decompressor
from konverge_resolution._internal.network.dialer import CheckedSockets, Lookup, create_connector
from konverge_resolution._internal.network.environment_proxies import EnvironmentProxies
from konverge_resolution._internal.network.error_translation import translate_error
from konverge_resolution._internal.network.errors import (
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    RefusedAddressError,
    RefusedRedirectError,
    ResponseTooLargeError,
)
from konverge_resolution._internal.network.origin_credential import OriginCredential
from konverge_resolution._internal.network.proxy import Proxy
from konverge_resolution._internal.network.redirects import (
    MAX_REDIRECTS,
    REDIRECT_STATUSES,
    RequestHop,
    follow_redirect,
)
from konverge_resolution._internal.network.request_tracing import RequestTrace, create_trace_config
from konverge_resolution._internal.network.trust_store import TrustStore
from konverge_resolution._internal.network.url_parsing import parse_url, redact_url

__all__ = ["AddressNamer", "GuardedHttp", "HopCheck", "HttpResponse", "HttpSession", "HttpStream"]

_MAX_CONNECTIONS = 128
"""Maximum number of connections of one pool; the engine permits fewer concurrent fetches of one namespace."""
_SAFE_METHODS = frozenset({"GET", "HEAD"})

HopCheck: TypeAlias = Callable[[str], None]
"""Check of an address that raises an error to refuse it, before the host is resolved."""

AddressNamer: TypeAlias = Callable[[str], str]
"""Converts a URL without its query to the address for a `HopCheck`."""


def _keep_url(url: str) -> str:
    return url


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Complete response with any status.

    Args:
        status: The status code.
        headers: The headers by name in lower case; repeated headers are joined with commas.
        body: The decompressed body.
        url: The final URL after redirects, which may contain another server's tokens.
        redirected_to: The final URL without its query; empty without redirects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    redirected_to: str = ""

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {len(self.body)} bytes)"


class HttpStream:
    """Response whose body has not been read.

    Attributes:
        status: The status code.
        headers: The headers by name in lower case.
        url: The final URL after redirects.
        redirected_to: The final URL without its query, which may contain another server's tokens; empty without
            redirects.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, *, max_bytes: int, is_redirected: bool, progress: FetchProgress
    ) -> None:
        self.status: int = response.status
        self.url: str = str(response.url)
        self.redirected_to: str = str(response.url.with_query(None)) if is_redirected else ""
        self.headers: dict[str, str] = {}
        for name, value in response.headers.items():
            before = self.headers.get(name.lower())
            self.headers[name.lower()] = value if before is None else f"{before}, {value}"
        self._response = response
        self._max_bytes = max_bytes
        self._is_redirected = is_redirected
        self._progress = progress

    async def iter_chunks(self) -> AsyncIterator[bytes]:
        """Yield the decompressed body in pieces until its end. Call it only once.

        Raises:
            NetworkError: The body is incomplete, too large, or cannot be decompressed.
        """
        try:
            if self._response.method != "HEAD":
                async for piece in self._iter_pieces():
                    yield piece
        except NetworkError as error:
            raise (error.with_redirect() if self._is_redirected else error) from None

    async def read(self) -> bytes:
        """Return the whole body.

        Raises:
            NetworkError: As `iter_chunks`.
        """
        return b"".join([piece async for piece in self.iter_chunks()])

    async def _iter_pieces(self) -> AsyncIterator[bytes]:
        host = redact_url(self._response.url)
        length = self._response.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) > self._max_bytes:
            raise ResponseTooLargeError(host, self._max_bytes)
        sent = size = 0
        try:
            reader = create_decompressor(self.headers.get("content-encoding", ""))
            self._progress.enter("receiving the response of", host)
            while data := await self._read_some(host):
                self._progress.add_bytes(len(data))
                sent += len(data)  # limited separately: a compressed body can be endless without any content
                if sent > self._max_bytes:
                    raise ResponseTooLargeError(host, self._max_bytes)
                for piece in reader.feed(data):
                    size += len(piece)
                    if size > self._max_bytes:
                        raise ResponseTooLargeError(host, self._max_bytes)
                    yield piece
            reader.flush()
        except DecompressionError as error:
            raise MalformedResponseError(host, str(error)) from None

    async def _read_some(self, host: str) -> bytes:
        try:
            return await self._response.content.readany()
        except AIOHTTP_ERRORS as error:
            raise translate_error(host, error) from None


class HttpSession:
    """Session of requests that share connections; made by `GuardedHttp.session`.

    An address is checked once for each connection, which keeps that address. Without `ConnectionPools`, a request is
    sent once. A shared connection may be closed by its server while no request uses it. A GET or HEAD that finds this
    out is sent again on another connection.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        route: Callable[[URL], dict[str, Any]],
        checks: Sequence[HopCheck] = (),
        name_address: AddressNamer = _keep_url,
        *,
        progress: FetchProgress,
        is_shared: bool = False,
    ) -> None:
        self._route = route
        self._session = session
        self._progress = progress
        self._is_shared = is_shared
        self._checks = checks
        self._name_address = name_address

    def with_address_names(self, *, name_address: AddressNamer) -> HttpSession:
        """Return a session with the same connections, whose checks use other names (`GuardedHttp.with_settings`)."""
        return HttpSession(
            self._session,
            self._route,
            self._checks,
            name_address,
            progress=self._progress,
            is_shared=self._is_shared,
        )

    async def get(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """Send a GET request; a response with any status is returned.

        Args:
            url: A URL with http or https, and without a user.
            headers: Further headers. After a redirect to another origin, only harmless ones are sent.
            max_bytes: Maximum size of the body in bytes, compressed and decompressed.
            credential: Sent only to its origin, even if the URL has another one.

        Raises:
            NetworkError: There is no response, or none that may be read.
        """
        return await self.request("GET", url, headers=headers, max_bytes=max_bytes, credential=credential)

    async def head(
        self, url: str, *, headers: Mapping[str, str] = {}, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """Send a HEAD request as `get` does; the response has no body."""
        return await self.request("HEAD", url, headers=headers, max_bytes=0, credential=credential)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        max_bytes: int,
        credential: OriginCredential | None = None,
        unfollowed: Collection[int] = (),
    ) -> HttpResponse:
        """Send a request as `get` does, with any method.

        Args:
            method: The method in upper case.
            url: As for `get`.
            headers: As for `get`.
            body: The body. A redirect with a body to another origin is refused.
            max_bytes: As for `get`.
            credential: As for `get`.
            unfollowed: Redirect status codes that are returned as responses.

        Raises:
            NetworkError: As for `get`.
        """
        response = self.stream(
            url,
            method=method,
            headers=headers,
            body=body,
            max_bytes=max_bytes,
            credential=credential,
            unfollowed=unfollowed,
        )
        async with response as stream:
            return HttpResponse(stream.status, stream.headers, await stream.read(), stream.url, stream.redirected_to)

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        max_bytes: int,
        credential: OriginCredential | None = None,
        unfollowed: Collection[int] = (),
    ) -> AsyncIterator[HttpStream]:
        """Send a request as `request` does, and return the response before its body is read.

        The body can be read within the block; the rest is discarded at its end.

        Raises:
            NetworkError: As for `get`. Errors of the body are raised where it is read: `HttpStream.iter_chunks`.
            Exception: An error of a `HopCheck`, for the first URL or the target of a redirect.
        """
        target = parse_url(url)
        if not any(name.lower() == "user-agent" for name in headers):
            headers = {"User-Agent": "konverge", **headers}
        hop = RequestHop(method, target, headers, body, credential)
        is_redirected = False
        for _ in range(MAX_REDIRECTS + 1):
            self._check_hop(hop.url)
            try:
                response = await self._send_hop(hop)
            except NetworkError as error:
                raise (error.with_redirect() if is_redirected else error) from None
            try:
                location = response.headers.get("location", "")
                if response.status not in REDIRECT_STATUSES or response.status in unfollowed or not location:
                    yield HttpStream(
                        response, max_bytes=max_bytes, is_redirected=is_redirected, progress=self._progress
                    )
                    return
                hop = follow_redirect(hop, response.status, location)
            finally:
                response.close()  # after a complete read the connection is already back in the pool
            is_redirected = True
        raise RefusedRedirectError(redact_url(target), f"redirects more than {MAX_REDIRECTS} times")

    def _check_hop(self, url: URL) -> None:
        address = self._name_address(str(url.with_query(None)))
        for check in self._checks:
            check(address)

    async def _send_hop(self, hop: RequestHop) -> aiohttp.ClientResponse:
        host = redact_url(hop.url)
        # Compressed responses can be decompression bombs; they are not requested, and limited if sent anyway.
        headers = {**hop.headers, "Accept-Encoding": "identity"}
        if hop.credential is not None and hop.credential.is_for(hop.url):
            headers = hop.credential.add_to(headers)
        route = self._route(hop.url)
        if hop.url.scheme == "http":
            # The proxy reads plain HTTP requests itself; without CONNECT, aiohttp does not add the proxy headers.
            headers |= route.get("proxy_headers", {})
        while True:
            trace = RequestTrace(self._progress, host)
            try:
                return await self._session.request(
                    hop.method,
                    hop.url,
                    headers=headers,
                    data=hop.body,
                    allow_redirects=False,
                    trace_request_ctx=trace,
                    **route,
                )
            except ConnectionBrokenError as error:
                # Each repetition uses up one open connection, and a new one is not repeated: this ends.
                if self._is_shared and trace.is_reused and hop.method in _SAFE_METHODS:
                    continue
                raise translate_error(host, error) from None
            except AIOHTTP_ERRORS as error:
                raise translate_error(host, error) from None
            except ValueError as error:
                raise InvalidRequestError(host, f"cannot receive the request ({type(error).__name__})") from None


class GuardedHttp:
    """HTTP client with checks and limits; `konverge_resolution.Services.http`.

    It has no state. The requests of a `session` share its connections. With `pools`, sessions of one tenant with the
    same permitted networks share connections, which stay open for some seconds; otherwise they are closed at the end.

    Args:
        lookup: Resolves names.
        tls: The trusted certificates.
        networks: The permitted networks besides the public internet.
        proxy: The proxy for all connections, or those of the environment of a user; this client reads no variable
            itself. The address of a proxy must be permitted. The proxy resolves names then, while addresses in URLs are
            still checked here.
        checks: Check every URL of a request, including targets of redirects.
        name_address: Converts a URL for these checks (default: the URL without its query).
        pools: Open connections of all tenants; None for connections of its own.
        tenant: The namespace of the requests, for `pools`.
        progress: Receives the phases of requests; None for none.

    Attributes:
        proxy: The proxy.
    """

    def __init__(
        self,
        lookup: Lookup,
        *,
        tls: TrustStore,
        networks: AllowedNetworks | None = None,
        proxy: Proxy | EnvironmentProxies | None = None,
        checks: Sequence[HopCheck] = (),
        name_address: AddressNamer = _keep_url,
        pools: ConnectionPools | None = None,
        tenant: str = "",
        progress: FetchProgress | None = None,
    ) -> None:
        self._lookup = lookup
        self._tls = tls
        self._networks = networks or AllowedNetworks()
        self.proxy: Proxy | EnvironmentProxies | None = proxy
        self._progress = progress or FetchProgress()
        self._checks = tuple(checks)
        self._name_address = name_address
        self._pools = pools
        self._tenant = tenant

    def with_settings(
        self,
        *,
        authorities: str = "",
        proxy: Proxy | None = None,
        check_hop: HopCheck | None = None,
        name_address: AddressNamer | None = None,
    ) -> GuardedHttp:
        """Return a client with more trusted certificates, a proxy or another check; it reaches no further addresses.

        Args:
            authorities: Further trusted certificates in PEM.
            proxy: The proxy; unchanged when None.
            check_hop: Another check of every URL; none when None.
            name_address: Converts a URL for the checks; unchanged when None.

        Raises:
            ValueError: The certificates cannot be parsed.
        """
        return GuardedHttp(
            self._lookup,
            tls=self._tls.with_authorities(authorities),
            networks=self._networks,
            proxy=proxy or self.proxy,
            checks=self._checks if check_hop is None else (*self._checks, check_hop),
            name_address=name_address or self._name_address,
            pools=self._pools,
            tenant=self._tenant,
            progress=self._progress,
        )

    @asynccontextmanager
    async def session(self) -> AsyncIterator[HttpSession]:
        """Provide a session whose requests share connections; without `pools`, all are closed after the block."""
        pools = self._pools or ConnectionPools(max_pools=0)
        key = PoolKey(self._tenant, self._networks.names)
        async with pools.borrow(key, self._create_connections) as connections:
            yield HttpSession(
                connections.session,
                self._find_route,
                self._checks,
                self._name_address,
                progress=self._progress,
                is_shared=self._pools is not None,
            )

    def _create_connections(self) -> OpenConnections:
        sockets = CheckedSockets(self._networks)
        connector = create_connector(
            self._lookup, self._networks, sockets, limit=_MAX_CONNECTIONS, idle_seconds=IDLE_SECONDS
        )
        session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            middlewares=(send_once,),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            trace_configs=[create_trace_config()],
        )
        return OpenConnections(session, sockets)

    async def get(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """Send a GET request in a session of its own (`HttpSession.get`)."""
        async with self.session() as session:
            return await session.get(url, headers=headers, max_bytes=max_bytes, credential=credential)

    async def head(
        self, url: str, *, headers: Mapping[str, str] = {}, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """Send a HEAD request in a session of its own (`HttpSession.head`)."""
        async with self.session() as session:
            return await session.head(url, headers=headers, credential=credential)

    @asynccontextmanager
    async def stream(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: OriginCredential | None = None
    ) -> AsyncIterator[HttpStream]:
        """Stream a response in a session of its own (`HttpSession.stream`)."""
        async with (
            self.session() as session,
            session.stream(url, headers=headers, max_bytes=max_bytes, credential=credential) as response,
        ):
            yield response

    def _find_route(self, url: URL) -> dict[str, Any]:
        """Return aiohttp's arguments for a URL: its certificates and its proxy."""
        host = url.raw_host or ""
        if is_address(host) and (kind := self._networks.find_refusal(host)):
            raise RefusedAddressError(host, host, kind, self._networks.opened_by)
        proxy = None if self.proxy is None else self.proxy.select(url.scheme, host, url.port or 0)
        if proxy is None and (host, url.port) in self._networks.proxies:
            raise RefusedAddressError(host, host, "that of a proxy of this user", self._networks.opened_by)
        route: dict[str, Any] = {}
        if proxy is not None:
            route = {"proxy": URL(proxy.url), "proxy_headers": proxy.headers}
        if url.scheme == "https" or (proxy is not None and proxy.url.startswith("https:")):
            route["ssl"] = self._tls.load_context()
        return route
