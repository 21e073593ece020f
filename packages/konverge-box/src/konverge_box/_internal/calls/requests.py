"""The request of a call, with evaluated expressions, checked as far as possible without a connection."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from yarl import URL

from konverge._internal.message_text import shorten
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.calls.retry_policy import NO_RETRIES, RetryPolicy
from konverge_resolution._internal.network import AllowedNetworks, InvalidRequestError
from konverge_resolution._internal.network import parse_url as checked_url

__all__ = ["PORTS", "SCHEMES", "CallRequest", "HostPort", "check_headers", "parse_call_url"]

SCHEMES = {
    "http": ("http", "https"),
    "prometheus": ("http", "https"),
    "redis": ("redis", "rediss"),
    "postgres": ("postgres", "postgresql"),
}
PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379, "postgres": 5432, "postgresql": 5432}

_MAX_QUOTE_LENGTH = 200

_MAX_HEADERS = 100
_MAX_HEADER_LENGTH = 8192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_NO_HEADER_LETTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_RESERVED_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"accept-encoding", "proxy-authorization", "proxy-connection"}
)
"""Headers that determine the framing of the request, its target, and the decoding of the response."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """The host and port of a connection."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call as it is sent. It can contain values of Secrets, so its text form shows only the origin.

    Args:
        name: The name of the call in the file.
        protocol: A key of `SCHEMES`.
        url: The URL with a scheme of the protocol, with a host and without a user.
        networks: The allowed networks besides the public internet.
        method: The HTTP method.
        headers: The HTTP headers without the credential.
        body: The HTTP body.
        query: The query for Prometheus or PostgreSQL.
        parameters: The PostgreSQL parameters ``$1``, ``$2`` and so on.
        command: The words of the Redis command.
        credential: The token or password; empty without one.
        credential_header: The HTTP header of the credential.
        expected: The HTTP statuses of a success; empty for all below 400.
        timeout_seconds: The time limit of one attempt, from the name resolution to the last byte.
        retry_policy: The retries.
        cache_seconds: The time for which the response is cached; zero without caching.
        is_sensitive: Tells whether an expression of the request read a Secret.
    """

    name: str = ""
    protocol: str
    url: URL
    networks: AllowedNetworks
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    query: str = ""
    parameters: tuple[str | None, ...] = ()
    command: tuple[str, ...] = ()
    credential: str = ""
    credential_header: str = "Authorization"
    expected: tuple[int, ...] = ()
    timeout_seconds: float = 10.0
    retry_policy: RetryPolicy = NO_RETRIES
    cache_seconds: float = 0.0
    is_sensitive: bool = False

    def __repr__(self) -> str:
        return f"CallRequest({self.protocol} to {self.display_origin})"

    @property
    def host_port(self) -> HostPort:
        """The host and port of the URL, before any redirect."""
        return get_host_port(self.url)

    @property
    def display_origin(self) -> str:
        """The server for messages: scheme, host and port. Paths and queries can contain tokens."""
        origin = str(self.url.origin())
        return self.quote_reply(origin) if not self.is_sensitive else "a URL that comes from a Secret (not shown)"

    def compute_fingerprint(self) -> bytes:
        """Return a hash of everything that the response can depend on, including the credential."""
        parts = (
            *(self.protocol, str(self.url), self.networks.names, self.method, self.headers, self.body or b""),
            *(
                self.body is None,
                self.query,
                self.parameters,
                self.command,
                self.credential,
                self.credential_header,
                self.expected,
            ),
            self.is_sensitive,
        )
        return hashlib.sha256(msgspec.json.encode(parts)).digest()

    def contains_credential(self, text: str) -> bool:
        """Tell whether a text of the server contains the credential."""
        return bool(self.credential) and self.credential in text

    def quote_reply(self, text: str) -> str:
        """Shorten a text of the server for a message; hide it if it can contain a value of a Secret."""
        if self.is_sensitive or self.contains_credential(text):
            return "(not shown)"
        plain = " ".join(text.encode(errors="replace").decode().split())
        return shorten(plain, _MAX_QUOTE_LENGTH)


def get_host_port(url: URL) -> HostPort:
    """Return the host and port of a URL from `parse_call_url`."""
    return HostPort(url.raw_host or "", url.port or PORTS[url.scheme])


def parse_call_url(text: str, protocol: str, *, is_sensitive: bool = False) -> URL:
    """Parse a URL.

    Args:
        text: The URL as written or rendered.
        protocol: The protocol, which determines the allowed schemes.
        is_sensitive: Tells whether messages must not contain any part of it.

    Raises:
        CallAttemptError: The URL is not valid.
    """
    try:
        return checked_url(text, SCHEMES[protocol])
    except InvalidRequestError as error:
        problem = "comes from a Secret (not shown) and is not valid" if is_sensitive else error.problem
        raise CallAttemptError(f"expected a URL such as {SCHEMES[protocol][0]}://host/…; this one {problem}") from None


def check_headers(headers: Mapping[str, str]) -> None:
    """Check headers, which can come from expressions.

    Raises:
        CallAttemptError: A header would change the framing of the request or the behavior of the connection.
    """
    if len(headers) > _MAX_HEADERS:
        raise CallAttemptError(f"expected at most {_MAX_HEADERS} headers, found {len(headers)}")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CallAttemptError("header name: expected letters, digits and dashes, found other characters")
        if name.lower() in _RESERVED_HEADERS:
            raise CallAttemptError(f"header {name}: expected a header that the operator does not set itself; remove it")
        if _NO_HEADER_LETTER.search(value):
            raise CallAttemptError(f"header {name}: expected one line of text, found line breaks or control characters")
        if len(value) > _MAX_HEADER_LENGTH:
            raise CallAttemptError(
                f"header {name}: expected at most {_MAX_HEADER_LENGTH} characters, found {len(value)}"
            )
