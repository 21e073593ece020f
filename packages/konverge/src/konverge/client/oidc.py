"""Tokens of an OpenID Connect provider: a kubeconfig's ``auth-provider`` of the name ``oidc``.

It is older than exec plug-ins and still in use. kubectl writes a token that it has refreshed back to the file; konverge
keeps it in memory alone, since a program that serves a cluster does not change its user's configuration. A provider
whose refresh tokens work only once therefore locks out whoever starts from that file next: use an exec plug-in there.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlsplit

import msgspec

from konverge.cancellation import await_shielded
from konverge.client.config import TlsConfig
from konverge.client.credential_renewer import CredentialRenewer, IssuedIdentity
from konverge.client.credentials import Credentials, Identity
from konverge.client.json_decoding import DECODE_ERRORS
from konverge.client.proxy_environment import find_usable_proxy
from konverge.client.redaction import redact
from konverge.client.server_url import find_url_error, redact_url
from konverge.client.socket_factory import SocketFactory
from konverge.client.tls_contexts import build_ssl_context
from konverge.clock import Clock
from konverge.errors import ConfigurationError, NotConnectedError

if TYPE_CHECKING:
    import aiohttp

__all__ = ["OidcCredentials", "OidcProvider", "parse_oidc_provider"]

_TIMEOUT_SECONDS = 25.0
_MAX_RESPONSE_BYTES = 1024 * 1024
_ERROR_CODE = re.compile("[a-z_]{1,64}")
_DISCOVERY = "/.well-known/openid-configuration"


@dataclass(frozen=True, slots=True)
class OidcProvider:
    """Who issues a user's tokens, and what was issued so far.

    Args:
        user: Whose they are, for messages.
        issuer: The provider's URL (``idp-issuer-url``).
        client_id: Who asks.
        client_secret: How that is proved; empty for a public client.
        id_token: The token for the API server; may have expired.
        refresh_token: What gets another; empty when there is none.
        authority: The certificates (PEM) that the provider's must be signed by; empty for those of the system.
        proxy_url: The HTTP proxy on the way; empty for none.
    """

    user: str
    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    id_token: str = field(default="", repr=False)
    refresh_token: str = field(default="", repr=False)
    authority: bytes = field(default=b"", repr=False)
    proxy_url: str = field(default="", repr=False)


@dataclass(slots=True)
class _OidcTokens:
    """The tokens of now; shared by the event loops, since a refresh token may work only once."""

    id_token: str = field(repr=False)
    refresh_token: str = field(repr=False)


def parse_oidc_provider(fields: Mapping[str, Any], *, whose: str, folder: Path, env: Mapping[str, str]) -> OidcProvider:
    """Read the ``config`` of a kubeconfig's ``auth-provider``.

    Args:
        fields: What it says.
        whose: Whose tokens they are, for messages.
        folder: Where the kubeconfig is: the authority's path may be relative to that.
        env: The proxy variables are looked up here.

    Raises:
        konverge.errors.ConfigurationError: It cannot be used.
    """

    def get_text(name: str) -> str:
        return str(fields.get(name) or "")

    issuer = get_text("idp-issuer-url").rstrip("/")
    where = f"the auth-provider oidc of {whose}"
    if mistake := find_url_error(issuer):
        raise ConfigurationError(
            f'{where}: idp-issuer-url must be an http(s) URL (found "{redact_url(issuer)}": {mistake})'
        )
    if not get_text("client-id"):
        raise ConfigurationError(f"{where} has no client-id")
    if not (get_text("id-token") or get_text("refresh-token")):
        raise ConfigurationError(f"{where} has neither an id-token nor a refresh-token: log in first")
    if not get_text("id-token").isascii() or not get_text("id-token").isprintable():
        raise ConfigurationError(f"{where}: the id-token has characters that no token has")
    authority = _read_authority(
        get_text("idp-certificate-authority-data"), get_text("idp-certificate-authority"), where, folder
    )
    if authority:
        build_ssl_context(TlsConfig(authority), where)  # or it would be found out an hour from now
    return OidcProvider(
        user=whose,
        issuer=issuer,
        client_id=get_text("client-id"),
        client_secret=get_text("client-secret"),
        id_token=get_text("id-token"),
        refresh_token=get_text("refresh-token"),
        authority=authority,
        proxy_url=find_usable_proxy(issuer, env),
    )


class OidcCredentials:
    """An id-token, refreshed before it expires and when the server refuses it. What is new stays in memory.

    Args:
        provider: Who issues the tokens.
        clock: Says what has expired.
        tokens: Those of another event loop; for `clone`.
    """

    def __init__(self, provider: OidcProvider, clock: Clock, *, tokens: _OidcTokens | None = None) -> None:
        self.description = f"the id-token of {provider.user} by {provider.issuer}"
        self._provider = provider
        self._clock = clock
        self._tokens = tokens or _OidcTokens(provider.id_token, provider.refresh_token)
        known = self._tokens.id_token
        first = IssuedIdentity(Identity.from_token(known), _parse_token_expiry(known)) if known else None
        self._renewal = CredentialRenewer(self._refresh, clock, self.description, first=first)

    async def get_identity(self) -> Identity:
        """The token.

        Raises:
            konverge.errors.ConfigurationError: It has expired and cannot be refreshed: somebody must log in again.
            konverge.errors.NotConnectedError: The provider does not answer.
        """
        return await self._renewal.get_identity()

    def invalidate(self, identity: Identity) -> bool:
        """A refreshed one may be accepted."""
        return bool(self._tokens.refresh_token) and self._renewal.invalidate(identity)

    def clone(self) -> Credentials:
        """One that refreshes by itself, and knows what the other has got."""
        return OidcCredentials(self._provider, self._clock, tokens=self._tokens)

    async def _refresh(self) -> IssuedIdentity:
        tokens = self._tokens
        used = tokens.refresh_token
        try:
            await _TokenRefresher(self._provider, tokens).refresh()
        except ConfigurationError:
            if tokens.refresh_token == used:
                raise
            # Meanwhile another event loop has used it up, and got a token for both.
        return IssuedIdentity(Identity.from_token(tokens.id_token), _parse_token_expiry(tokens.id_token))


class _TokenRefresher:
    """A refresh token for a new id-token (OpenID Connect Core 1.0, section 12).

    Args:
        provider: Who issues them.
        tokens: The token to give, and where the new ones are kept.
    """

    def __init__(self, provider: OidcProvider, tokens: _OidcTokens) -> None:
        self._provider = provider
        self._tokens = tokens
        self._where = f"the OpenID Connect provider {provider.issuer} of {provider.user}"

    async def refresh(self) -> None:
        """Have new ones. Cancelled once the refresh token has been sent, it takes the answer in first."""
        provider, refresh_token = self._provider, self._tokens.refresh_token
        if not refresh_token:
            raise ConfigurationError(
                f"the id-token of {provider.user} has expired, and there is no refresh-token: log in again"
            )
        import aiohttp  # not at the top: most users have another kind of credentials, and it takes a while

        sockets = SocketFactory()
        connector = aiohttp.TCPConnector(ssl=self._build_ssl_context(), force_close=True, socket_factory=sockets)
        deadline = asyncio.get_running_loop().time() + _TIMEOUT_SECONDS
        try:
            async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
                async with asyncio.timeout_at(deadline):
                    endpoint = await self._discover_token_endpoint(session)
                # A provider may take each refresh token once: what it answers is known to nobody else, and without it
                # somebody would have to log in again.
                await await_shielded(self._refresh_tokens(session, endpoint, refresh_token, deadline))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            words = redact(str(error), (refresh_token, provider.client_secret)) or type(error).__name__
            raise NotConnectedError(f"{self._where} does not answer: {words}") from error
        finally:
            await sockets.close_all()

    async def _discover_token_endpoint(self, session: aiohttp.ClientSession) -> str:
        provider = self._provider
        status, document = await self._send_request(session, "GET", provider.issuer + _DISCOVERY)
        if status != 200:
            raise NotConnectedError(f"{self._where} does not describe itself: HTTP status {status} for {_DISCOVERY}")
        if str(document.get("issuer", "")).rstrip("/") != provider.issuer:
            raise ConfigurationError(f"{self._where} says that it is another one. Check idp-issuer-url")
        endpoint = str(document.get("token_endpoint") or "")
        # What a password goes to is encrypted if the provider is.
        if find_url_error(endpoint) or urlsplit(endpoint).scheme not in ("https", urlsplit(provider.issuer).scheme):
            raise ConfigurationError(f"{self._where} names no token endpoint that can be used")
        return endpoint

    async def _refresh_tokens(
        self, session: aiohttp.ClientSession, endpoint: str, refresh_token: str, deadline: float
    ) -> None:
        async with asyncio.timeout_at(deadline):
            found = await self._request_tokens(session, endpoint, refresh_token)
        self._tokens.id_token, self._tokens.refresh_token = found.id_token, found.refresh_token

    async def _request_tokens(self, session: aiohttp.ClientSession, endpoint: str, refresh_token: str) -> _OidcTokens:
        provider = self._provider
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        # Providers take the client's secret in a header or in the form, and not all say which.
        status, answer = await self._send_request(session, "POST", endpoint, form, basic=True)
        if status in (400, 401) and answer.get("error") != "invalid_grant":
            status, answer = await self._send_request(session, "POST", endpoint, form, basic=False)
        if status != 200:
            if status >= 500 or status == 429:
                raise NotConnectedError(f"{self._where} cannot refresh the token now: HTTP status {status}")
            reason = (
                _describe_error_code(answer.get("error"), (refresh_token, provider.client_secret))
                or f"HTTP status {status}"
            )
            raise ConfigurationError(f"{self._where} does not refresh the token: {reason}. Log in again")
        id_token = answer.get("id_token")
        if not (isinstance(id_token, str) and id_token and id_token.isascii() and id_token.isprintable()):
            raise ConfigurationError(f"{self._where} answered without an id_token. It must grant the scope openid")
        return _OidcTokens(id_token, str(answer.get("refresh_token") or refresh_token))

    async def _send_request(
        self,
        session: aiohttp.ClientSession,
        method: str,
        url: str,
        form: Mapping[str, str] | None = None,
        *,
        basic: bool = False,
    ) -> tuple[int, dict[str, Any]]:
        provider = self._provider
        headers = {"accept": "application/json"}
        data = dict(form) if form is not None else None
        if data is not None and basic:
            # Each part in the form of a query first (RFC 6749, 2.3.1).
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
        elif data is not None:
            data |= {"client_id": provider.client_id, "client_secret": provider.client_secret}
        async with session.request(
            method, url, data=data, headers=headers, allow_redirects=False, proxy=provider.proxy_url or None
        ) as found:
            body = b""
            while (piece := await found.content.readany()) and len(body) <= _MAX_RESPONSE_BYTES:
                body += piece
            try:
                return found.status, msgspec.json.decode(body, type=dict)
            except DECODE_ERRORS:
                return found.status, {}

    def _build_ssl_context(self) -> ssl.SSLContext:
        if not self._provider.authority:
            return ssl.create_default_context()
        return build_ssl_context(TlsConfig(self._provider.authority), self._where)


def _describe_error_code(error: object, secrets: tuple[str, ...]) -> str:
    """The provider's code for what is wrong (RFC 6749, 5.2); whatever is none may be what it was sent."""
    if not (isinstance(error, str) and _ERROR_CODE.fullmatch(error)):
        return ""
    return "" if any(secret and secret in error for secret in secrets) else error


def _parse_token_expiry(token: str) -> datetime | None:
    """When a JSON web token says that it expires (RFC 7519, ``exp``). The server verifies it, not we."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=dict)
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except DECODE_ERRORS:
        return None
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        return None


def _read_authority(data: str, path: str, where: str, folder: Path) -> bytes:
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except ValueError:
            raise ConfigurationError(f"{where}: idp-certificate-authority-data is not base64") from None
    if not path:
        return b""
    try:
        return (folder / path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{where}: cannot read idp-certificate-authority {path}: {error.strerror}") from error
    except ValueError:
        raise ConfigurationError(f"{where}: idp-certificate-authority is no path") from None
