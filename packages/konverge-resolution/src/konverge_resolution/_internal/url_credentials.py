"""Detection of credentials in addresses. Pure.

An address is copied into lock files, requests, pins and the logs of servers and proxies. So a reference with a
credential in an address is refused, and the credential must be in a Secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

__all__ = ["find_credential"]

_WITH_USERS = frozenset({"ssh", "git+ssh"})
"""Schemes whose addresses have a user that is not secret."""

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
_MAX_NESTING = 4
"""Limit for addresses that are parameters of addresses."""
_NO_LETTER = re.compile(r"[^a-z0-9]")


def find_credential(text: str) -> str:
    """Name the part of an address that contains a credential; empty if it has none, or is not an address.

    It detects a user and a password before the host, and parameters of the query, the path (``;token=``) and the
    fragment by their names: ``token``, ``X-Amz-Signature``, ``sig`` and others, in any case, with any punctuation and a
    number at the end. It also searches addresses that are values of such parameters. The result never contains the
    value.

    Args:
        text: Any text.
    """
    pending = [text]
    for _ in range(_MAX_NESTING):
        nested: list[str] = []
        for address in pending:
            if "://" not in address:
                continue
            try:
                parts = urlsplit(address)
                user, at, _ = parts.netloc.rpartition("@")
            except ValueError:
                continue
            if at and (":" in user or parts.scheme.lower() not in _WITH_USERS):
                return "a user or password before its host"
            parameters = list(_iter_parameters(parts.query, parts.fragment, *_iter_path_parameters(parts.path)))
            if name := next((name for name, _ in parameters if _is_credential(name)), ""):
                return f"{name[:40]!r} in its query"
            nested += [value for _, value in parameters]
        pending = nested
    return ""


def _iter_parameters(*queries: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of parameters that have a value."""
    for query in queries:
        yield from parse_qsl(query.replace(";", "&"), keep_blank_values=False)


def _iter_path_parameters(path: str) -> Iterator[str]:
    return (each.partition(";")[2] for each in path.split("/") if ";" in each)


def _is_credential(name: str) -> bool:
    plain = _NO_LETTER.sub("", name.lower()).rstrip("0123456789")
    return plain in _NAMES or plain.endswith(_ENDINGS)
