"""What is sent: a call whose expressions have been evaluated, checked as far as it can be without a connection."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from yarl import URL

from konverge.box.calls.failures import CallFailure
from konverge.box.calls.retrying import NEVER, Pauses
from konverge.network import InvalidRequestError, Networks
from konverge.network import parsed_url as checked_url

__all__ = ["PORTS", "SCHEMES", "Place", "Request", "check_headers", "parsed_url"]

SCHEMES = {
    "http": ("http", "https"),
    "prometheus": ("http", "https"),
    "redis": ("redis", "rediss"),
    "postgres": ("postgres", "postgresql"),
}
PORTS = {"http": 80, "https": 443, "redis": 6379, "rediss": 6379, "postgres": 5432, "postgresql": 5432}

_SHOWN_LENGTH = 200

_MOST_HEADERS = 100
_LONGEST_HEADER = 8192
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_NO_HEADER_LETTER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OUR_HEADERS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"accept-encoding", "proxy-authorization", "proxy-connection"}
)
"""Headers that decide how the request is framed, whom it reaches, and how the answer is read."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a connection goes."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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
        pauses: How often it is tried.
        cache_seconds: How long its answer is kept; zero for not.
        is_sensitive: Whether an expression of it looked at a Secret.
    """

    name: str = ""
    protocol: str
    url: URL
    networks: Networks
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
    pauses: Pauses = NEVER
    cache_seconds: float = 0.0
    is_sensitive: bool = False

    def __repr__(self) -> str:
        return f"Request({self.protocol} to {self.shown})"

    @property
    def place(self) -> Place:
        """Where it goes first."""
        return place_of(self.url)

    @property
    def shown(self) -> str:
        """Whom it asks, for messages: scheme, host and port. Paths and queries have tokens in them at times."""
        origin = str(self.url.origin())
        return self.quotable(origin) if not self.is_sensitive else "a URL that comes from a Secret (not shown)"

    def fingerprint(self) -> bytes:
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

    def repeats(self, text: str) -> bool:
        """Tell whether a text of the other side has the credential in it."""
        return bool(self.credential) and self.credential in text

    def quotable(self, text: str) -> str:
        """A text of the other side, shortened for a message; not if it could repeat what came from a Secret."""
        if self.is_sensitive or self.repeats(text):
            return "(not shown)"
        plain = " ".join(text.encode(errors="replace").decode().split())
        return plain if len(plain) <= _SHOWN_LENGTH else f"{plain[:_SHOWN_LENGTH]}…"


def place_of(url: URL) -> Place:
    """Host and port of a URL that `parsed_url` made."""
    return Place(url.raw_host or "", url.port or PORTS[url.scheme])


def parsed_url(text: str, protocol: str, *, is_sensitive: bool = False) -> URL:
    """Read a URL.

    Args:
        text: As it was written or rendered.
        protocol: Whose schemes it may have.
        is_sensitive: Whether messages must not show any of it.

    Raises:
        CallFailure: It cannot be used.
    """
    try:
        return checked_url(text, SCHEMES[protocol])
    except InvalidRequestError as error:
        found = "comes from a Secret (not shown) and is none" if is_sensitive else error.problem
        raise CallFailure(f"expected a URL such as {SCHEMES[protocol][0]}://host/…; this one {found}") from None


def check_headers(headers: Mapping[str, str]) -> None:
    """Check headers, which expressions may have made.

    Raises:
        CallFailure: One would change the request's form, or what the connection does.
    """
    if len(headers) > _MOST_HEADERS:
        raise CallFailure(f"expected at most {_MOST_HEADERS} headers, found {len(headers)}")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise CallFailure("a header's name: expected letters, digits and dashes, found others")
        if name.lower() in _OUR_HEADERS:
            raise CallFailure(f"header {name}: it is set by what sends the request; leave it out")
        if _NO_HEADER_LETTER.search(value):
            raise CallFailure(f"header {name}: expected one line of text, found line breaks or control characters")
        if len(value) > _LONGEST_HEADER:
            raise CallFailure(f"header {name}: expected at most {_LONGEST_HEADER} letters, found {len(value)}")
