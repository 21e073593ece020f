"""URLs from others: validation, and redaction for messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address

from yarl import URL

from konverge_resolution._internal.network.errors import InvalidRequestError

__all__ = ["parse_url", "redact_url"]

_MAX_LENGTH = 8192
_NO_LETTER = re.compile(r"[\x00-\x20\x7f\\]")
_SCHEME_AND_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")


def parse_url(text: str, schemes: Collection[str] = ("http", "https")) -> URL:
    """Parse a URL and drop its fragment.

    Args:
        text: The URL as it was written.
        schemes: The accepted schemes, the usual one first.

    Raises:
        InvalidRequestError: The URL is invalid. The message contains only its scheme.
    """
    first = next(iter(schemes))
    if len(text) > _MAX_LENGTH:
        raise _build_url_error(f"expected at most {_MAX_LENGTH} characters, found {len(text)}")
    if _NO_LETTER.search(text):
        raise _build_url_error("expected no blanks, backslashes or control characters; use percent-encoding")
    parts = _SCHEME_AND_AUTHORITY.match(text)
    if parts is None or parts[1].lower() not in schemes:
        found = parts[1][:20] if parts else "none"
        raise _build_url_error(
            f"expected {' or '.join(f'{scheme}://' for scheme in schemes)} and a host, found scheme {found}"
        )
    if "@" in parts[2]:
        raise _build_url_error("expected no user and no password before the host; use a Secret")
    try:
        url = URL(text).with_fragment(None)
        if not url.raw_host or url.port == 0 or "%" in url.raw_host:
            raise ValueError
    except (ValueError, UnicodeError):
        raise _build_url_error(f"expected one such as {first}://host/path, found no host, or an invalid port") from None
    if not _is_host(url.raw_host):
        raise _build_url_error("its host is neither a name nor an address (expected 127.0.0.1, not 0177.1)")
    return url


def redact_url(url: URL) -> str:
    """Return scheme, host and port for messages. Paths and queries may contain tokens."""
    return str(url.origin())


def _is_host(host: str) -> bool:
    """Tell whether a host is unambiguous: no number that only some programs read as an address."""
    labels = host.rstrip(".").split(".")
    if ":" in host or not _NUMBER.fullmatch(labels[-1]):
        return True
    try:
        return str(IPv4Address(host)) == host
    except ValueError:
        return False


def _build_url_error(problem: str) -> InvalidRequestError:
    return InvalidRequestError("the URL", f"cannot be used: {problem}")
