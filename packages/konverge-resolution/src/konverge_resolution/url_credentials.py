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
    "authkey",
    "authorization",
    "credential",
    "credentials",
    "jwt",
    "licensekey",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "secretid",
    "secretkey",
    "sessid",
    "sessionid",
    "sharedaccesssignature",
    "signature",
    "subscriptionkey",
    "token",
)
_NAMES = frozenset(
    {
        "auth",
        "basicauth",
        "bearer",
        "code",
        "cookie",
        "cred",
        "creds",
        "hdnea",
        "hdnts",
        "hmac",
        "otp",
        "pass",
        "pwd",
        "sas",
        "session",
        "sid",
        "sig",
        "userpass",
        "xauth",
    }
)
_MOST_NESTED = 4
"""Addresses that are parameters of addresses."""
_NO_LETTER = re.compile(r"[^a-z0-9]")


def find_credential(text: str) -> str:
    """Say where an address has a credential; empty where it has none, or is no address.

    Known are a user and a password before the host, and parameters of the query, the path (``;token=``) and the
    fragment by their names: ``token``, ``X-Amz-Signature``, ``sig`` and others, in any case, with any marks in them and
    with a number after them; also in an address that is such a parameter itself. The value is never told.

    Args:
        text: Any text.
    """
    pending = [text]
    for _ in range(_MOST_NESTED):
        nested: list[str] = []
        for each in pending:
            if "://" not in each:
                continue
            try:
                parts = urlsplit(each)
                user, at, _ = parts.netloc.rpartition("@")
            except ValueError:
                continue
            if at and (":" in user or parts.scheme.lower() not in _WITH_USERS):
                return "a user or a password before its host"
            found = list(_iter_parameters(parts.query, parts.fragment, *_iter_path_parameters(parts.path)))
            if name := next((name for name, _ in found if _is_credential(name)), ""):
                return f"{name[:40]!r} in its query"
            nested += [value for _, value in found]
        pending = nested
    return ""


def _iter_parameters(*queries: str) -> Iterator[tuple[str, str]]:
    """Names and values of parameters that have a value."""
    for query in queries:
        yield from parse_qsl(query.replace(";", "&"), keep_blank_values=False)


def _iter_path_parameters(path: str) -> Iterator[str]:
    return (each.partition(";")[2] for each in path.split("/") if ";" in each)


def _is_credential(name: str) -> bool:
    plain = _NO_LETTER.sub("", name.lower()).rstrip("0123456789")
    return plain in _NAMES or plain.endswith(_ENDINGS)
