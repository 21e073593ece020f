"""URLs from outside: whether a request can be sent there, and how they are shown to people."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

__all__ = ["find_url_error", "redact_url"]

_SCHEMES = ("http", "https")
_MAX_LENGTH = 200

# All of it that is in front of a host, wherever a password with odd characters makes it seem to end.
_USERINFO = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", re.DOTALL)

# What stands where a port should be and is none: of "http://user:password", the host was forgotten.
_NO_PORT = re.compile(r"^((?:[A-Za-z][A-Za-z0-9+.-]*://)?(?:\[[^\]]*\]|[^:/\[]*)):(?!//|\d*(?:[/?#]|$)).*$", re.DOTALL)


def find_url_error(url: str, *, may_have_user: bool = False) -> str:
    """What is wrong with an http(s) URL, without quoting it; empty when it can be used.

    Args:
        url: The URL.
        may_have_user: Whether it may name a user and a password, as a proxy's may.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port  # reading the port is what refuses one that is none
        if parts.scheme not in _SCHEMES:
            return "it starts with neither http:// nor https://"
        if not host:
            return "it names no host"
        if port == 0:
            return "its port is 0"
        if not url.isprintable() or " " in url or not _is_encodable(url):
            return "it has characters that no URL has"
        host.encode("idna")
    except UnicodeError:
        return "its host is no name that a name service could know"
    except ValueError:
        return "its host or its port is not written as in a URL"
    if not may_have_user and parts.username is not None:
        return "it holds a user or a password, which belong to the user's credentials"
    return ""


def redact_url(url: str) -> str:
    """The URL for messages, whether or not it can be used: without a user, a password and a query."""
    shown = _USERINFO.sub(r"\1", url)
    shown = _NO_PORT.sub(r"\1:...", shown)
    shown = re.split(r"[?#]", shown, maxsplit=1)[0]
    return "".join(letter if letter.isprintable() else " " for letter in shown)[:_MAX_LENGTH]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
