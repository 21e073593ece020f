"""HTTP to places that somebody else names: whom it reaches, what it shows them, and how much it takes from them.

Every hop is checked before it is connected to, the first request and each redirect: its URL by whoever set the client
up (`HopCheck`), then the address that its connection goes to. Redirects are followed by hand, never from TLS to none;
what was meant for one origin (a credential, most headers) is not shown to another one, and does not come back by a
detour. Bodies are read up to a limit, unpacked or not. There are no cookies, no retries, nothing of the environment,
and no time-outs: whoever asks has a deadline and cancels, which closes everything.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
from yarl import URL

from konverge.aiohttp_errors import AIOHTTP_ERRORS, send_once
from konverge_resolution.network.aiohttp_errors import translate_error
from konverge_resolution.network.allowed_networks import AllowedNetworks, is_address
from konverge_resolution.network.content_encoding import DecompressionError, create_decompressor
from konverge_resolution.network.dialer import CheckedSockets, Lookup, create_connector
from konverge_resolution.network.errors import (
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    RefusedAddressError,
    ResponseTooLargeError,
)
from konverge_resolution.network.origin_credential import OriginCredential
from konverge_resolution.network.proxy import Proxy
from konverge_resolution.network.redirects import MAX_REDIRECTS, REDIRECT_STATUSES, RequestHop, follow_redirect
from konverge_resolution.network.trust_store import TrustStore
from konverge_resolution.network.url_parsing import parse_url, redact_url

__all__ = ["AddressNamer", "GuardedHttp", "HopCheck", "HttpResponse", "HttpSession", "HttpStream"]

_CONNECTIONS = 16
"""Of one session, at most."""

HopCheck: TypeAlias = Callable[[str], None]
"""Refuses an address by raising an error of its own, before the host is resolved or connected to."""

AddressNamer: TypeAlias = Callable[[str], str]
"""Gives the address that a `HopCheck` gets for a URL, which has no query."""


def _keep_url(url: str) -> str:
    return url


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An answer that was read to its end; any status is one.

    Args:
        status: The status.
        headers: By their names in lower case; of a header that comes several times all values, with commas.
        body: Unpacked.
        url: Where it came from after all redirects, which may have another server's tokens in it.
        redirected_to: The same without a query; empty without redirects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str
    redirected_to: str = ""

    def __repr__(self) -> str:
        return f"HttpResponse({self.status}, {len(self.body)} bytes)"


class HttpStream:
    """An answer whose body is still to come.

    Attributes:
        status: The status.
        headers: By their names in lower case.
        url: Where it comes from after all redirects.
        redirected_to: The same without a query, which may have another server's tokens in it; empty without redirects.
    """

    def __init__(self, found: aiohttp.ClientResponse, *, max_bytes: int, is_redirected: bool) -> None:
        self.status = found.status
        self.url = str(found.url)
        self.redirected_to = str(found.url.with_query(None)) if is_redirected else ""
        self.headers: dict[str, str] = {}
        for name, value in found.headers.items():
            before = self.headers.get(name.lower())
            self.headers[name.lower()] = value if before is None else f"{before}, {value}"
        self._response = found
        self._max_bytes = max_bytes
        self._is_redirected = is_redirected

    async def iter_chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces, unpacked, until it ends; once.

        Raises:
            NetworkError: It breaks off, is longer than it may be, or cannot be unpacked.
        """
        try:
            if self._response.method != "HEAD":
                async for piece in self._iter_pieces():
                    yield piece
        except NetworkError as error:
            raise (error.with_redirect() if self._is_redirected else error) from None

    async def read(self) -> bytes:
        """All of the body.

        Raises:
            NetworkError: As `chunks`.
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
            while data := await self._read_some(host):
                sent += len(data)  # by itself, too: a packed body can go on for ever without any content
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
    """Several requests that share connections; made by `GuardedHttp.session`.

    An address is judged once for each connection, which then stays with that address.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        way: Callable[[URL], dict[str, Any]],
        checks: Sequence[HopCheck] = (),
        name_address: AddressNamer = _keep_url,
    ) -> None:
        self._route = way
        self._session = session
        self._checks = checks
        self._name_address = name_address

    def with_address_names(self, *, name_address: AddressNamer) -> HttpSession:
        """The same connections for requests that are checked by other names (`GuardedHttp.with_settings`)."""
        return HttpSession(self._session, self._route, self._checks, name_address)

    async def get(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """Ask for something; any status is an answer.

        Args:
            url: With http or https, and without a user.
            headers: What else is sent. To other origins, when redirected there, only what is harmless.
            max_bytes: How large the body may be, unpacked or not.
            credential: Sent to its origin alone, and to nobody if the URL is another's.

        Raises:
            NetworkError: There is no answer, or none that may be read.
        """
        return await self.request("GET", url, headers=headers, max_bytes=max_bytes, credential=credential)

    async def head(
        self, url: str, *, headers: Mapping[str, str] = {}, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """Ask as `get` does, for an answer without its body."""
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
        """Ask as `get` does, by any method.

        Args:
            method: In capital letters.
            url: As for `get`.
            headers: As for `get`.
            body: What is sent. It is not taken to another origin; a redirect there is refused.
            max_bytes: As for `get`.
            credential: As for `get`.
            unfollowed: Redirecting statuses that are an answer themselves.

        Raises:
            NetworkError: As for `get`.
        """
        asked = self.stream(
            url,
            method=method,
            headers=headers,
            body=body,
            max_bytes=max_bytes,
            credential=credential,
            unfollowed=unfollowed,
        )
        async with asked as found:
            return HttpResponse(found.status, found.headers, await found.read(), found.url, found.redirected_to)

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
        """Ask as `request` does, which says what the arguments are, for an answer whose body is still to come.

        It is read within the block as far as anybody wants; the rest of it is lost with the block.

        Raises:
            NetworkError: As for `get`. A body is told of where it is read: `HttpStream.chunks`.
            Exception: What a `HopCheck` raises, of the first URL or of one that a redirect leads to.
        """
        target = parse_url(url)
        if not any(name.lower() == "user-agent" for name in headers):
            headers = {"User-Agent": "konverge", **headers}
        hop = RequestHop(method, target, headers, body, credential)
        is_redirected = False
        for _ in range(MAX_REDIRECTS + 1):
            self._check_hop(hop.url)
            try:
                found = await self._send_hop(hop)
            except NetworkError as error:
                raise (error.with_redirect() if is_redirected else error) from None
            try:
                location = found.headers.get("location", "")
                if found.status not in REDIRECT_STATUSES or found.status in unfollowed or not location:
                    yield HttpStream(found, max_bytes=max_bytes, is_redirected=is_redirected)
                    return
                hop = follow_redirect(hop, found.status, location)
            finally:
                found.close()  # of an answer that was read to its end the connection is free by now, and stays
            is_redirected = True
        raise MalformedResponseError(redact_url(target), f"redirects more than {MAX_REDIRECTS} times")

    def _check_hop(self, url: URL) -> None:
        address = self._name_address(str(url.with_query(None)))
        for check in self._checks:
            check(address)

    async def _send_hop(self, hop: RequestHop) -> aiohttp.ClientResponse:
        host = redact_url(hop.url)
        # Packed answers can be bombs; these are asked for by nobody, and read with care all the same.
        headers = {**hop.headers, "Accept-Encoding": "identity"}
        if hop.credential is not None and hop.credential.is_for(hop.url):
            headers = hop.credential.add_to(headers)
        way = self._route(hop.url)
        if hop.url.scheme == "http":
            # Here the proxy reads the request itself; there is no CONNECT that aiohttp would put its headers in.
            headers |= way.get("proxy_headers", {})
        try:
            return await self._session.request(
                hop.method,
                hop.url,
                headers=headers,
                data=hop.body,
                allow_redirects=False,
                **way,
            )
        except AIOHTTP_ERRORS as error:
            raise translate_error(host, error) from None
        except ValueError as error:
            raise InvalidRequestError(host, f"cannot be sent the request ({type(error).__name__})") from None


class GuardedHttp:
    """Asks over HTTP within rules; `konverge_resolution.Services.http`.

    It holds nothing. Each request has a connection of its own, those of a `session` share theirs, and none is kept
    afterwards: the next one's address is judged anew.

    Args:
        lookup: Resolves names.
        tls: Whose certificates are trusted.
        networks: What may be reached besides the public internet.
        proxy: Who connects instead of us; the environment is not asked. Its own address has to be one that may be
            reached. Those of names are its business then, while addresses in URLs are still judged here.
        checks: Each decides about every URL that is about to be asked, also where a redirect leads.
        name_address: Gives what these checks get for a URL; the URL itself, without its query, when not given.
    """

    def __init__(
        self,
        lookup: Lookup,
        *,
        tls: TrustStore,
        networks: AllowedNetworks | None = None,
        proxy: Proxy | None = None,
        checks: Sequence[HopCheck] = (),
        name_address: AddressNamer = _keep_url,
    ) -> None:
        self._lookup = lookup
        self._tls = tls
        self._networks = networks or AllowedNetworks()
        self._proxy = proxy
        self._checks = tuple(checks)
        self._name_address = name_address

    def with_settings(
        self,
        *,
        authorities: str = "",
        proxy: Proxy | None = None,
        check_hop: HopCheck | None = None,
        name_address: AddressNamer | None = None,
    ) -> GuardedHttp:
        """The same with more certificates trusted, by a proxy, or with one more check; nothing more may be reached.

        Args:
            authorities: More certificates that are trusted, in PEM.
            proxy: Who connects; the same as here when not given.
            check_hop: Decides about every URL besides the checks that there are; nothing when not given.
            name_address: Gives what checks get for a URL; the same as here when not given.

        Raises:
            ValueError: These are no certificates.
        """
        return GuardedHttp(
            self._lookup,
            tls=self._tls.with_authorities(authorities),
            networks=self._networks,
            proxy=proxy or self._proxy,
            checks=self._checks if check_hop is None else (*self._checks, check_hop),
            name_address=name_address or self._name_address,
        )

    @asynccontextmanager
    async def session(self) -> AsyncIterator[HttpSession]:
        """Requests that share connections. After the block there is none, whatever happens in it."""
        sockets = CheckedSockets(self._networks)
        session = aiohttp.ClientSession(
            connector=create_connector(self._lookup, self._networks, sockets, limit=_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            middlewares=(send_once,),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
        try:
            yield HttpSession(session, self._find_route, self._checks, self._name_address)
        finally:
            try:
                await session.close()
            finally:
                await sockets.close_all()

    async def get(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """`HttpSession.get` on a connection of its own."""
        async with self.session() as session:
            return await session.get(url, headers=headers, max_bytes=max_bytes, credential=credential)

    async def head(
        self, url: str, *, headers: Mapping[str, str] = {}, credential: OriginCredential | None = None
    ) -> HttpResponse:
        """`HttpSession.head` on a connection of its own."""
        async with self.session() as session:
            return await session.head(url, headers=headers, credential=credential)

    @asynccontextmanager
    async def stream(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: OriginCredential | None = None
    ) -> AsyncIterator[HttpStream]:
        """`HttpSession.stream` on a connection of its own."""
        async with (
            self.session() as session,
            session.stream(url, headers=headers, max_bytes=max_bytes, credential=credential) as found,
        ):
            yield found

    def _find_route(self, url: URL) -> dict[str, Any]:
        """How aiohttp gets to a URL: with which certificates, by which proxy."""
        host = url.raw_host or ""
        if is_address(host) and (kind := self._networks.find_refusal(host)):
            raise RefusedAddressError(host, host, kind, self._networks.opened_by)
        proxy = self._proxy if self._proxy is not None and not self._proxy.bypasses(host) else None
        way: dict[str, Any] = {}
        if proxy is not None:
            way = {"proxy": URL(proxy.url), "proxy_headers": proxy.headers}
        if url.scheme == "https" or (proxy is not None and proxy.url.startswith("https:")):
            way["ssl"] = self._tls.load_context()
        return way
