"""HTTP to places that somebody else names: whom it reaches, what it shows them, and how much it takes from them.

Every hop is judged: its URL, and the address that its connection goes to. Redirects are followed by hand, never from
TLS to none; what was meant for one origin (a credential, most headers) is not shown to another one, and does not come
back by a detour. Bodies are read up to a limit, unpacked or not. There are no cookies, no retries, nothing of the
environment, and no time-outs: whoever asks has a deadline and cancels, which closes everything.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from yarl import URL

from konverge.network.addresses import Networks, is_address
from konverge.network.connecting import CheckedSockets, Lookup, connector
from konverge.network.failures import (
    BrokenConnectionError,
    InvalidRequestError,
    MalformedAnswerError,
    NetworkError,
    RefusedAddressError,
    RefusedRedirectError,
    TooLargeError,
    UnreachableError,
    UntrustedError,
)
from konverge.network.proxies import Proxy
from konverge.network.trust import Trust
from konverge.network.unpacking import UnpackingError, unpacker
from konverge.network.urls import parsed_url, shown

__all__ = ["MOST_REDIRECTS", "Credential", "GuardedHttp", "HttpAnswer", "HttpSession", "HttpStream"]

MOST_REDIRECTS = 5

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that another server may see, too, when one redirects to it."""
_CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Credential:
    """A header for one origin alone.

    Args:
        value: The header's value, with its scheme: ``Bearer …``.
        origin: Who may see it, for example ``https://example.com``; a path is left out.
        header: The header.
    """

    value: str = field(repr=False)
    origin: str
    header: str = "Authorization"

    def is_for(self, url: URL) -> bool:
        """Tell whether a URL's server may see it."""
        return URL(self.origin).origin() == url.origin()


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer that was read to its end; any status is one.

    Args:
        status: The status.
        headers: By their names in lower case; of a header that comes several times all values, with commas.
        body: Unpacked.
        url: Where it came from after all redirects, which may have another server's tokens in it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    def __repr__(self) -> str:
        return f"HttpAnswer({self.status}, {len(self.body)} bytes)"


class HttpStream:
    """An answer whose body is still to come.

    Attributes:
        status: The status.
        headers: By their names in lower case.
        url: Where it comes from after all redirects.
    """

    def __init__(self, found: aiohttp.ClientResponse, *, max_bytes: int, is_redirected: bool) -> None:
        self.status = found.status
        self.url = str(found.url)
        self.headers: dict[str, str] = {}
        for name, value in found.headers.items():
            before = self.headers.get(name.lower())
            self.headers[name.lower()] = value if before is None else f"{before}, {value}"
        self._found = found
        self._max_bytes = max_bytes
        self._is_redirected = is_redirected

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces, unpacked, until it ends; once.

        Raises:
            NetworkError: It breaks off, is longer than it may be, or cannot be unpacked.
        """
        try:
            if self._found.method != "HEAD":
                async for piece in self._pieces():
                    yield piece
        except NetworkError as error:
            raise (error.after_redirect() if self._is_redirected else error) from None

    async def read(self) -> bytes:
        """All of the body.

        Raises:
            NetworkError: As `chunks`.
        """
        return b"".join([piece async for piece in self.chunks()])

    async def _pieces(self) -> AsyncIterator[bytes]:
        host = shown(self._found.url)
        length = self._found.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) > self._max_bytes:
            raise TooLargeError(host, self._max_bytes)
        sent = size = 0
        try:
            reader = unpacker(self.headers.get("content-encoding", ""))
            while data := await self._read_some(host):
                sent += len(data)  # by itself, too: a packed body can go on for ever without any content
                if sent > self._max_bytes:
                    raise TooLargeError(host, self._max_bytes)
                for piece in reader.feed(data):
                    size += len(piece)
                    if size > self._max_bytes:
                        raise TooLargeError(host, self._max_bytes)
                    yield piece
            reader.end()
        except UnpackingError as error:
            raise MalformedAnswerError(host, str(error)) from None

    async def _read_some(self, host: str) -> bytes:
        try:
            return await self._found.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _failure(host, error) from None


@dataclass(frozen=True, slots=True)
class _Sent:
    """One hop of a request."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    credential: Credential | None


class HttpSession:
    """Several requests that share connections; made by `GuardedHttp.session`.

    An address is judged once for each connection, which then stays with that address.
    """

    def __init__(self, session: aiohttp.ClientSession, way: Callable[[URL], dict[str, Any]]) -> None:
        self._way = way
        self._session = session

    async def get(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: Credential | None = None
    ) -> HttpAnswer:
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
        self, url: str, *, headers: Mapping[str, str] = {}, credential: Credential | None = None
    ) -> HttpAnswer:
        """The same without the body."""
        return await self.request("HEAD", url, headers=headers, max_bytes=0, credential=credential)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        max_bytes: int,
        credential: Credential | None = None,
        unfollowed: Collection[int] = (),
    ) -> HttpAnswer:
        """The same with any method.

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
            return HttpAnswer(found.status, found.headers, await found.read(), found.url)

    @asynccontextmanager
    async def stream(
        self,
        url: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        max_bytes: int,
        credential: Credential | None = None,
        unfollowed: Collection[int] = (),
    ) -> AsyncIterator[HttpStream]:
        """The same for a body that is read while it comes, or not at all; what is not read goes with the block."""
        target = parsed_url(url)
        if not any(name.lower() == "user-agent" for name in headers):
            headers = {"User-Agent": "konverge", **headers}
        sent = _Sent(method, target, headers, body, credential)
        is_redirected = False
        for _ in range(MOST_REDIRECTS + 1):
            try:
                found = await self._exchanged(sent)
            except NetworkError as error:
                raise (error.after_redirect() if is_redirected else error) from None
            try:
                location = found.headers.get("location", "")
                if found.status not in _REDIRECTS or found.status in unfollowed or not location:
                    yield HttpStream(found, max_bytes=max_bytes, is_redirected=is_redirected)
                    return
                sent = _redirected(sent, found.status, location)
            finally:
                found.close()  # of an answer that was read to its end the connection is free by now, and stays
            is_redirected = True
        raise MalformedAnswerError(shown(target), f"redirects more than {MOST_REDIRECTS} times")

    async def _exchanged(self, sent: _Sent) -> aiohttp.ClientResponse:
        host = shown(sent.url)
        # Packed answers can be bombs; these are asked for by nobody, and read with care all the same.
        headers = {**sent.headers, "Accept-Encoding": "identity"}
        if sent.credential is not None and sent.credential.is_for(sent.url):
            name = sent.credential.header
            headers = {each: value for each, value in headers.items() if each.lower() != name.lower()}
            headers[name] = sent.credential.value
        way = self._way(sent.url)
        if sent.url.scheme == "http":
            # Here the proxy reads the request itself; there is no CONNECT that aiohttp would put its headers in.
            headers |= way.get("proxy_headers", {})
        try:
            return await self._session.request(
                sent.method,
                sent.url,
                headers=headers,
                data=sent.body,
                allow_redirects=False,
                **way,
            )
        except (_BrokenError, aiohttp.ClientError, OSError) as error:
            # Not chained: their texts have URLs and headers.
            raise _failure(host, error) from None
        except ValueError as error:
            raise InvalidRequestError(host, f"cannot be sent the request ({type(error).__name__})") from None


class GuardedHttp:
    """Asks over HTTP within rules; `konverge.resolution.Services.http`.

    It holds nothing. Each request has a connection of its own, those of a `session` share theirs, and none is kept
    afterwards: the next one's address is judged anew.

    Args:
        lookup: Resolves names.
        tls: Whose certificates are trusted.
        networks: What may be reached besides the public internet.
        proxy: Who connects instead of us; the environment is not asked. Its own address has to be one that may be
            reached. Those of names are its business then, while addresses in URLs are still judged here.
    """

    def __init__(
        self,
        lookup: Lookup,
        *,
        tls: Trust,
        networks: Networks | None = None,
        proxy: Proxy | None = None,
    ) -> None:
        self._lookup = lookup
        self._tls = tls
        self._networks = networks or Networks()
        self._proxy = proxy

    def adapted(self, *, authorities: str = "", proxy: Proxy | None = None) -> GuardedHttp:
        """The same with more certificates trusted, or by a proxy; what may be reached stays as it is.

        Raises:
            ValueError: These are no certificates.
        """
        trust = self._tls.with_more(authorities)
        return GuardedHttp(self._lookup, tls=trust, networks=self._networks, proxy=proxy or self._proxy)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[HttpSession]:
        """Requests that share connections. After the block there is none, whatever happens in it."""
        sockets = CheckedSockets(self._networks)
        session = aiohttp.ClientSession(
            connector=connector(self._lookup, self._networks, sockets, limit=_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            middlewares=(_once,),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        )
        try:
            yield HttpSession(session, self._way)
        finally:
            await session.close()
            await sockets.end()

    async def get(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: Credential | None = None
    ) -> HttpAnswer:
        """`HttpSession.get` on a connection of its own."""
        async with self.session() as session:
            return await session.get(url, headers=headers, max_bytes=max_bytes, credential=credential)

    async def head(
        self, url: str, *, headers: Mapping[str, str] = {}, credential: Credential | None = None
    ) -> HttpAnswer:
        """`HttpSession.head` on a connection of its own."""
        async with self.session() as session:
            return await session.head(url, headers=headers, credential=credential)

    @asynccontextmanager
    async def stream(
        self, url: str, *, headers: Mapping[str, str] = {}, max_bytes: int, credential: Credential | None = None
    ) -> AsyncIterator[HttpStream]:
        """`HttpSession.stream` on a connection of its own."""
        async with (
            self.session() as session,
            session.stream(url, headers=headers, max_bytes=max_bytes, credential=credential) as found,
        ):
            yield found

    def _way(self, url: URL) -> dict[str, Any]:
        """How aiohttp gets to a URL: with which certificates, by which proxy."""
        host = url.raw_host or ""
        if is_address(host) and (kind := self._networks.refusal(host)):
            raise RefusedAddressError(host, host, kind, self._networks.opened_by)
        proxy = self._proxy if self._proxy is not None and not self._proxy.leaves_out(host) else None
        way: dict[str, Any] = {}
        if proxy is not None:
            way = {"proxy": URL(proxy.url), "proxy_headers": proxy.headers}
        if url.scheme == "https" or (proxy is not None and proxy.url.startswith("https:")):
            way["ssl"] = self._tls.context()
        return way


class _BrokenError(Exception):
    """A connection broke. Not one of aiohttp's errors, after which it would send some requests once more by itself."""


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _BrokenError(error) from error


def _redirected(sent: _Sent, status: int, location: str) -> _Sent:
    here = shown(sent.url)
    try:
        url = parsed_url(str(sent.url.join(URL(location))))
    except (InvalidRequestError, ValueError, UnicodeError) as error:
        told = error.problem if isinstance(error, InvalidRequestError) else "cannot be used: it is none"
        raise RefusedRedirectError(here, f"redirects to a URL that {told}") from None
    if sent.url.scheme == "https" and url.scheme != "https":
        raise RefusedRedirectError(here, "redirects from https to http, which is not followed")
    is_changed = status == 303 or (status in (301, 302) and sent.method == "POST")
    following = replace(sent, url=url)
    if is_changed and sent.method != "HEAD":
        following = replace(following, method="GET", body=None)
    if url.origin() != sent.url.origin():
        # What was meant for one server is not shown to another, whoever says so; nor does it come back to the first.
        if following.body is not None:
            raise RefusedRedirectError(here, "redirects a request with a body to another server; expected none")
        headers = {name: value for name, value in following.headers.items() if name.lower() in _HARMLESS}
        following = replace(following, headers=headers, credential=None)
    if following.body is None:
        headers = {name: value for name, value in following.headers.items() if name.lower() != "content-type"}
        following = replace(following, headers=headers)
    return following


def _failure(host: str, error: Exception) -> NetworkError:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return UnreachableError(host, "has a name that cannot be resolved")
        case aiohttp.ClientConnectorCertificateError():
            return UntrustedError(host, "has a certificate that is not trusted")
        case aiohttp.ClientSSLError():
            return UntrustedError(host, "does not speak TLS with us")
        case aiohttp.ClientProxyConnectionError():
            return UnreachableError(host, "is reached by a proxy, which cannot be connected to")
        case aiohttp.ClientHttpProxyError():
            return UnreachableError(host, f"is reached by a proxy, which refuses it with status {error.status}")
        case aiohttp.ClientConnectorError():
            # By its number: the text has the address, which is nobody's business but the resolver's.
            number = error.os_error.errno
            return UnreachableError(
                host, f"cannot be connected to: {os.strerror(number).lower() if number else 'nothing answers'}"
            )
        case aiohttp.InvalidURL():
            return InvalidRequestError(host, "has a host that is neither a name nor an address")
        case aiohttp.ClientPayloadError():
            return BrokenConnectionError(host, "broke off in the middle of its answer")
        case _BrokenError() | aiohttp.ClientOSError() | OSError():
            return BrokenConnectionError(host, "hung up without an answer")
    return MalformedAnswerError(host, f"gave an answer that is no HTTP ({type(error).__name__})")
