"""Authentication challenges of registries, and the tokens of token servers. Pure.

A password is sent to the registry that its Secret names, and to the token server of that registry: the registry's own
host, or a host that the operator has configured for it. A registry alone cannot decide where passwords are sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_resolution._internal.resolvers.bundles.failures import build_unsupported_error

__all__ = [
    "MAX_TOKEN_BYTES",
    "BasicChallenge",
    "BearerChallenge",
    "may_receive_password",
    "parse_challenges",
    "parse_token",
]

MAX_TOKEN_BYTES = 64 * 1024
"""Maximum size of a response with a token."""

_MAX_HEADER = 8192
# One character class for the separators: two that both match blanks would backtrack for a second each.
_SCHEME = re.compile(r"[\s,]*(?P<scheme>[A-Za-z][A-Za-z0-9-]*)(?:\s+|$)(?!=)")
_PARAMETER = re.compile(r'[\s,]*(?P<name>[A-Za-z0-9_-]+)\s*=\s*(?:"(?P<quoted>[^"\\]*)"|(?P<plain>[^\s,"]+))')


@dataclass(frozen=True, slots=True)
class BasicChallenge:
    """Challenge that requires a user and a password."""


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """Challenge that requires a token.

    Args:
        realm: The URL of the token server.
        service: The service that the token is for.
    """

    realm: str
    service: str = ""

    @property
    def origin(self) -> str:
        """Scheme, host and port of the realm."""
        url = urlsplit(self.realm)
        return f"{url.scheme}://{url.netloc}".lower()

    @property
    def host(self) -> str:
        """Host of the realm; the default port is omitted."""
        url = urlsplit(self.realm)
        default_port = f":{ {'https': 443, 'http': 80}.get(url.scheme) }"
        return url.netloc.lower().removesuffix(default_port)

    def build_url(self, repository: str) -> str:
        """Return the URL for a token that can only read a repository, whatever scope the registry requires."""
        service = {"service": self.service} if self.service else {}
        query = urlencode({**service, "scope": f"repository:{repository}:pull"})
        return f"{self.realm}{'&' if '?' in self.realm else '?'}{query}"


def parse_challenges(header: str) -> BasicChallenge | BearerChallenge | None:
    """Return the challenge of a ``WWW-Authenticate`` header: a token before a password, None for an unknown scheme."""
    header, basic_challenge = header[:_MAX_HEADER], None
    at = 0
    while (scheme := _SCHEME.match(header, at)) is not None:
        at = scheme.end()
        parameters: dict[str, str] = {}
        while (parameter := _PARAMETER.match(header, at)) is not None:
            at = parameter.end()
            parameters.setdefault(parameter["name"].lower(), parameter["quoted"] or parameter["plain"] or "")
        match scheme["scheme"].lower():
            case "bearer" if _is_realm(parameters.get("realm", "")):
                return BearerChallenge(parameters["realm"], parameters.get("service", ""))
            case "basic":
                basic_challenge = BasicChallenge()
    return basic_challenge


def _is_realm(text: str) -> bool:
    try:
        url = urlsplit(text)
        _ = url.port
    except ValueError:
        return False
    is_plain = url.username is None and not url.fragment and all(32 < ord(letter) < 127 for letter in text)
    return url.scheme in ("http", "https") and bool(url.hostname) and is_plain


def may_receive_password(challenge: BearerChallenge, host: str, realms: Iterable[str], *, is_plain_http: bool) -> bool:
    """Tell whether a token server may receive the password for a registry.

    Args:
        challenge: The challenge of the registry.
        host: The host of the registry that the connection goes to.
        realms: The configured token servers: ``registry=host of the realm``.
        is_plain_http: Whether connections to the registry use no TLS.
    """
    if not (challenge.realm.startswith("https://") or is_plain_http):
        return False
    return challenge.host == host or f"{host}={challenge.host}" in {realm.lower() for realm in realms}


def parse_token(body: bytes, *, what: str) -> str:
    """Return the value of ``Authorization`` from the response of a token server.

    Args:
        body: The body of the response.
        what: The name of the token server in messages.

    Raises:
        ResolutionError: The response contains no token.
    """
    try:
        document: Any = msgspec.json.decode(body)
    except DECODE_ERRORS:
        document = None
    token = (document.get("token") or document.get("access_token")) if isinstance(document, dict) else None
    if not isinstance(token, str) or not token or not all(32 < ord(letter) < 127 for letter in token):
        raise build_unsupported_error(what, "a JSON object with a token", "none")
    return f"Bearer {token}"
