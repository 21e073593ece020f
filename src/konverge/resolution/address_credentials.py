"""Credentials that somebody has written into an address, where they do not belong. Pure.

What stands in an address is copied: into lock files, requests, what is pinned, logs of servers and proxies. So a
reference with a credential in an address is refused as a whole, and a Secret has to have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

__all__ = ["find_credential"]

_WITH_USERS = frozenset({"ssh", "git+ssh"})
"""Schemes whose addresses have a user who is the same for everybody."""

_ENDINGS = (
    "accesskey",
    "accesskeyid",
    "apikey",
    "authorization",
    "credential",
    "credentials",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretkey",
    "sharedaccesssignature",
    "signature",
    "subscriptionkey",
    "token",
)
_NAMES = frozenset({"auth", "bearer", "code", "hmac", "pass", "pwd", "sas", "sessionid", "sig"})
_NO_LETTER = re.compile(r"[^a-z0-9]")


def find_credential(text: str) -> str:
    """Say where an address has a credential; empty where it has none, or is no address.

    Known are a user and a password before the host, and parameters of the query and the fragment by their names:
    ``token``, ``X-Amz-Signature``, ``sig`` and others, in any case and with any marks in them. The value is never told.

    Args:
        text: Any text.
    """
    if "://" not in text:
        return ""
    try:
        parts = urlsplit(text)
        user, at, _ = parts.netloc.rpartition("@")
    except ValueError:
        return ""
    if at and (":" in user or parts.scheme.lower() not in _WITH_USERS):
        return "a user or a password before its host"
    return next((f"{name[:40]!r} in its query" for name in _names(parts.query, parts.fragment)), "")


def _names(*queries: str) -> Iterator[str]:
    """The names of parameters that are credentials, and have a value."""
    for query in queries:
        for name, value in parse_qsl(query.replace(";", "&"), keep_blank_values=False):
            plain = _NO_LETTER.sub("", name.lower())
            if value and (plain in _NAMES or plain.endswith(_ENDINGS)):
                yield name
