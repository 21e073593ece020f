"""What a registry wants to see before it answers: challenges, and the tokens that somebody else gives for them. Pure.

A password is shown to the registry that its Secret names, and to the place whose tokens that registry takes: the
registry's own host, or a host that the operator has named for it. A registry alone may not say where passwords go.
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
"""Of an answer with a token."""

_MAX_HEADER = 8192
# One class for what is between them: two that both take blanks would be tried against each other, for a second each.
_SCHEME = re.compile(r"[\s,]*(?P<scheme>[A-Za-z][A-Za-z0-9-]*)(?:\s+|$)(?!=)")
_PARAMETER = re.compile(r'[\s,]*(?P<name>[A-Za-z0-9_-]+)\s*=\s*(?:"(?P<quoted>[^"\\]*)"|(?P<plain>[^\s,"]+))')


@dataclass(frozen=True, slots=True)
class BasicChallenge:
    """It wants a user and a password."""


@dataclass(frozen=True, slots=True)
class BearerChallenge:
    """It wants a token.

    Args:
        realm: Where tokens are.
        service: Whose they are.
    """

    realm: str
    service: str = ""

    @property
    def origin(self) -> str:
        """Scheme, host and port of the realm."""
        found = urlsplit(self.realm)
        return f"{found.scheme}://{found.netloc}".lower()

    @property
    def host(self) -> str:
        """Host of the realm, and its port where it is not the usual one."""
        found = urlsplit(self.realm)
        usual = f":{ {'https': 443, 'http': 80}.get(found.scheme) }"
        return found.netloc.lower().removesuffix(usual)

    def build_url(self, repository: str) -> str:
        """Where to ask for a token to read a repository, and nothing more, whatever the registry asks for."""
        asked = {"service": self.service} if self.service else {}
        query = urlencode({**asked, "scope": f"repository:{repository}:pull"})
        return f"{self.realm}{'&' if '?' in self.realm else '?'}{query}"


def parse_challenges(header: str) -> BasicChallenge | BearerChallenge | None:
    """What a ``WWW-Authenticate`` asks for; a token where there is a choice; None for nothing that is known."""
    header, basic_found = header[:_MAX_HEADER], None
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
                basic_found = BasicChallenge()
    return basic_found


def _is_realm(text: str) -> bool:
    try:
        found = urlsplit(text)
        _ = found.port
    except ValueError:
        return False
    is_plain = found.username is None and not found.fragment and all(32 < ord(letter) < 127 for letter in text)
    return found.scheme in ("http", "https") and bool(found.hostname) and is_plain


def may_receive_password(challenge: BearerChallenge, host: str, realms: Iterable[str], *, is_plain_http: bool) -> bool:
    """Tell whether a place that gives tokens may see the password for a registry.

    Args:
        challenge: What the registry says.
        host: The registry's, as it is connected to.
        realms: What the operator says: ``registry=host of the realm``.
        is_plain_http: Whether the registry itself is spoken to without TLS.
    """
    if not (challenge.realm.startswith("https://") or is_plain_http):
        return False
    return challenge.host == host or f"{host}={challenge.host}" in {each.lower() for each in realms}


def parse_token(body: bytes, *, what: str) -> str:
    """The value of ``Authorization`` from an answer with a token.

    Args:
        body: The answer.
        what: What messages call the place that has given it.

    Raises:
        ResolutionError: There is none in it.
    """
    try:
        found: Any = msgspec.json.decode(body)
    except DECODE_ERRORS:
        found = None
    token = (found.get("token") or found.get("access_token")) if isinstance(found, dict) else None
    if not isinstance(token, str) or not token or not all(32 < ord(letter) < 127 for letter in token):
        raise build_unsupported_error(what, "a token for the registry", "none")
    return f"Bearer {token}"
