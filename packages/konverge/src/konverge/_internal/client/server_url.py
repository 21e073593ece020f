"""URLs from outside: their validation, and their redaction for messages."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

__all__ = ["find_url_error", "redact_url"]

_SCHEMES = ("http", "https")
_MAX_LENGTH = 200

# Everything before the host, even if special characters in a password seem to end it earlier.
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)

# A text in the position of a port that is not a port: in "http://user:password", the host is missing.
_NO_PORT = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:\[[^\]]*\]|[^:/\[]*)):(?!//|\d*(?:[/?#]|$)).*$", re.DOTALL)


def find_url_error(url: str, *, may_have_user: bool = False) -> str:
    """Describe the error in an http(s) URL, without quoting the URL; return an empty text if it is valid.

    Args:
        url: The URL.
        may_have_user: Whether it may contain a user and a password, as the URL of a proxy may.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port  # this access raises an error for an invalid port
        if parts.scheme not in _SCHEMES:
            return "it starts with neither http:// nor https://"
        if not host:
            return "it has no host"
        if port == 0:
            return "its port is 0"
        if not url.isprintable() or " " in url or not _is_encodable(url):
            return "it has characters that are invalid in a URL"
        host.encode("idna")
    except UnicodeError:
        return "its host is not a valid name"
    except ValueError:
        return "its host or its port is invalid"
    if not may_have_user and parts.username is not None:
        return "it contains a user or a password, which belong to the user's credentials"
    return ""


def redact_url(url: str) -> str:
    """Return the URL for messages, valid or not, without a user, a password and a query."""
    redacted = _USERINFO.sub(r"\1", url)
    redacted = _NO_PORT.sub(r"\1:...", redacted)
    redacted = re.split(r"[?#]", redacted, maxsplit=1)[0]
    return "".join(letter if letter.isprintable() else " " for letter in redacted)[:_MAX_LENGTH]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
