"""What is sent: a call whose expressions have been evaluated, checked as far as it can be without a connection."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from yarl import URL

from konverge_box.calls.call_errors import CallAttemptError
from konverge_box.calls.retry_policy import NO_RETRIES, RetryPolicy
from konverge_resolution.network import AllowedNetworks, InvalidRequestError
from konverge_resolution.network import parse_url as checked_url

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
"""Headers that decide how the request is framed, whom it reaches, and how the answer is read."""


@dataclass(frozen=True, slots=True)
class HostPort:
    """Where a connection goes."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call as it is sent. It may hold values of Secrets, so it has no text.

    Args:
        name: What the file calls it.
        protocol: One of `SCHEMES`.
        url: Of one of the protocol's schemes, with a host and without a user.
        networks: Where it may go besides the public internet.
        method: Of HTTP.
        headers: Of HTTP, without the credential.
        body: Of HTTP.
        query: Of Prometheus and PostgreSQL.
        parameters: Of PostgreSQL: what stands for ``$1``, ``$2`` and so on in the query.
        command: Of Redis: its words.
        credential: A token or password; empty for none.
        credential_header: Where HTTP puts it.
        expected: The statuses that are a success; empty for all below 400.
        timeout_seconds: Of one attempt, from the name's resolution to the last byte.
        retry_policy: How often it is tried.
        cache_seconds: How long its answer is kept; zero for not.
        is_sensitive: Whether an expression of it looked at a Secret.
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
        return f"Request({self.protocol} to {self.display_origin})"

    @property
    def host_port(self) -> HostPort:
        """Where it goes first."""
        return get_host_port(self.url)

    @property
    def display_origin(self) -> str:
        """Whom it asks, for messages: scheme, host and port. Paths and queries have tokens in them at times."""
        origin = str(self.url.origin())
        return self.quote_reply(origin) if not self.is_sensitive else "a URL that comes from a Secret (not shown)"

    def compute_fingerprint(self) -> bytes:
        """The same for requests that are the same in all that their answer can depend on, credentials included."""
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
        """Tell whether a text of the other side has the credential in it."""
        return bool(self.credential) and self.credential in text

    def quote_reply(self, text: str) -> str:
        """A text of the other side, shortened for a message; not if it could repeat what came from a Secret."""
        if self.is_sensitive or self.contains_credential(text):
            return "(not shown)"
        plain = " ".join(text.encode(errors="replace").decode().split())
        return plain if len(plain) <= _MAX_QUOTE_LENGTH else f"{plain[:_MAX_QUOTE_LENGTH]}…"


def get_host_port(url: URL) -> HostPort:
    """Host and port of a URL that `parsed_url` made."""
    return HostPort(url.raw_host or "", url.port or PORTS[url.scheme])


def parse_call_url(text: str, protocol: str, *, is_sensitive: bool = False) -> URL:
    """Read a URL.

    Args:
        text: As it was written or rendered.
        protocol: Whose schemes it may have.
        is_sensitive: Whether messages must not show any of it.

    Raises:
        CallAttemptError: It cannot be used.
    """
    try:
        return checked_url(text, SCHEMES[protocol])
    except InvalidRequestError as error:
        found = "comes from a Secret (not shown) and is none" if is_sensitive else error.problem
        raise CallAttemptError(f"expected a URL such as {SCHEMES[protocol][0]}://host/…; this one {found}") from None


def check_headers(headers: Mapping[str, str]) -> None:
    """Check headers, which expressions may have made.

    Raises:
        CallAttemptError: One would change the request's form, or what the connection does.
    """
    if len(headers) > _MAX_HEADERS:
        raise CallAttemptError(f"expected at most {_MAX_HEADERS} headers, found {len(headers)}")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CallAttemptError("a header's name: expected letters, digits and dashes, found others")
        if name.lower() in _RESERVED_HEADERS:
            raise CallAttemptError(f"header {name}: it is set by what sends the request; leave it out")
        if _NO_HEADER_LETTER.search(value):
            raise CallAttemptError(f"header {name}: expected one line of text, found line breaks or control characters")
        if len(value) > _MAX_HEADER_LENGTH:
            raise CallAttemptError(f"header {name}: expected at most {_MAX_HEADER_LENGTH} letters, found {len(value)}")
