"""Tokens of an OpenID Connect provider: the ``auth-provider`` named ``oidc`` of a kubeconfig.

It is older than exec plug-ins and still in use. kubectl writes a refreshed token back to the file; konverge keeps it
only in memory, because an operator must not change its user's configuration. If refresh tokens of the provider work
only once, the next program that uses the file cannot log in: use an exec plug-in for such a provider.
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

from konverge._internal.cancellation import await_shielded
from konverge._internal.client.config import TlsConfig
from konverge._internal.client.credential_renewer import CredentialRenewer, IssuedIdentity
from konverge._internal.client.credentials import Credentials, Identity
from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.proxy_environment import find_usable_proxy
from konverge._internal.client.redaction import redact
from konverge._internal.client.server_url import find_url_error, redact_url
from konverge._internal.client.socket_factory import SocketFactory
from konverge._internal.client.tls_contexts import build_ssl_context
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
    """The provider of a user's tokens, with the tokens from the kubeconfig.

    Args:
        user: The user of the tokens, for messages.
        issuer: The URL of the provider (``idp-issuer-url``).
        client_id: The id of the client at the provider.
        client_secret: The secret of the client; empty for a public client.
        id_token: The token for the API server; it may have expired.
        refresh_token: The token for a refresh; empty if there is none.
        authority: The CA certificates (PEM) for the provider's certificate; empty for those of the system.
        proxy_url: The URL of the HTTP proxy; empty for none.
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
    """The present tokens; all event loops share them, because a refresh token may work only once."""

    id_token: str = field(repr=False)
    refresh_token: str = field(repr=False)


def parse_oidc_provider(fields: Mapping[str, Any], *, whose: str, folder: Path, env: Mapping[str, str]) -> OidcProvider:
    """Parse the ``config`` of a kubeconfig's ``auth-provider``.

    Args:
        fields: The fields of the section.
        whose: The user of the tokens, for messages.
        folder: The folder of the kubeconfig: the path of the authority may be relative to it.
        env: The environment with the proxy variables.

    Raises:
        konverge.errors.ConfigurationError: The section is invalid.
    """

    def get_text(name: str) -> str:
        return str(fields.get(name) or "")

    issuer = get_text("idp-issuer-url").rstrip("/")
    where = f"the auth-provider oidc of {whose}"
    if problem := find_url_error(issuer):
        raise ConfigurationError(
            f'{where}: idp-issuer-url: expected an http(s) URL, found "{redact_url(issuer)}": {problem}'
        )
    if not get_text("client-id"):
        raise ConfigurationError(f"{where} has no client-id")
    if not (get_text("id-token") or get_text("refresh-token")):
        raise ConfigurationError(f"{where} has neither an id-token nor a refresh-token: log in first")
    if not get_text("id-token").isascii() or not get_text("id-token").isprintable():
        raise ConfigurationError(f"{where}: id-token: expected printable ASCII characters, found others")
    authority = _read_authority(
        get_text("idp-certificate-authority-data"), get_text("idp-certificate-authority"), where, folder
    )
    if authority:
        build_ssl_context(
            TlsConfig(authority), where
        )  # otherwise an error would only show at the first refresh, an hour later
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
    """An id-token, refreshed before it expires and after the server rejects it. New tokens stay in memory.

    Args:
        provider: The provider of the tokens.
        clock: The source of time.
        tokens: The tokens of another event loop; for `clone`.
    """

    def __init__(self, provider: OidcProvider, clock: Clock, *, tokens: _OidcTokens | None = None) -> None:
        self.description = f"the id-token of {provider.user} by {provider.issuer}"
        self._provider = provider
        self._clock = clock
        self._tokens = tokens or _OidcTokens(provider.id_token, provider.refresh_token)
        id_token = self._tokens.id_token
        first = IssuedIdentity(Identity.from_token(id_token), _parse_token_expiry(id_token)) if id_token else None
        self._renewal = CredentialRenewer(self._refresh, clock, self.description, first=first)

    async def get_identity(self) -> Identity:
        """Return the identity with the present token; refresh it first if necessary.

        Raises:
            konverge.errors.ConfigurationError: The token has expired, and the user must log in again.
            konverge.errors.NotConnectedError: The provider does not respond.
        """
        return await self._renewal.get_identity()

    def invalidate(self, identity: Identity) -> bool:
        """Record that the server rejected the identity; return True if a refresh may help."""
        return bool(self._tokens.refresh_token) and self._renewal.invalidate(identity)

    def clone(self) -> Credentials:
        """Return credentials that refresh separately and share the tokens."""
        return OidcCredentials(self._provider, self._clock, tokens=self._tokens)

    async def _refresh(self) -> IssuedIdentity:
        tokens = self._tokens
        used = tokens.refresh_token
        try:
            await _TokenRefresher(self._provider, tokens).refresh()
        except ConfigurationError:
            if tokens.refresh_token == used:
                raise
            # Another event loop used the refresh token meanwhile, and received tokens for both.
        return IssuedIdentity(Identity.from_token(tokens.id_token), _parse_token_expiry(tokens.id_token))


class _TokenRefresher:
    """One refresh of the tokens (OpenID Connect Core 1.0, section 12).

    Args:
        provider: The provider of the tokens.
        tokens: The present tokens, which the refresh replaces.
    """

    def __init__(self, provider: OidcProvider, tokens: _OidcTokens) -> None:
        self._provider = provider
        self._tokens = tokens
        self._where = f"the OpenID Connect provider {provider.issuer} of {provider.user}"

    async def refresh(self) -> None:
        """Refresh the tokens. A cancellation after the refresh token was sent waits for the response first."""
        provider, refresh_token = self._provider, self._tokens.refresh_token
        if not refresh_token:
            raise ConfigurationError(
                f"the id-token of {provider.user} has expired, and there is no refresh-token: log in again"
            )
        import aiohttp  # not at the top: most users have other credentials, and the import is slow

        sockets = SocketFactory()
        connector = aiohttp.TCPConnector(ssl=self._build_ssl_context(), force_close=True, socket_factory=sockets)
        deadline = asyncio.get_running_loop().time() + _TIMEOUT_SECONDS
        try:
            async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
                async with asyncio.timeout_at(deadline):
                    endpoint = await self._discover_token_endpoint(session)
                # A provider may accept each refresh token once. If the response were lost, the user would have to log
                # in again.
                await await_shielded(self._refresh_tokens(session, endpoint, refresh_token, deadline))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            text = redact(str(error), (refresh_token, provider.client_secret)) or type(error).__name__
            raise NotConnectedError(f"{self._where} does not respond: {text}") from error
        finally:
            await sockets.close_all()

    async def _discover_token_endpoint(self, session: aiohttp.ClientSession) -> str:
        provider = self._provider
        status, document = await self._send_request(session, "GET", provider.issuer + _DISCOVERY)
        if status != 200:
            raise NotConnectedError(f"{self._where}: discovery failed: HTTP status {status} for {_DISCOVERY}")
        if str(document.get("issuer", "")).rstrip("/") != provider.issuer:
            raise ConfigurationError(f"{self._where}: the discovery document has another issuer. Check idp-issuer-url")
        endpoint = str(document.get("token_endpoint") or "")
        # The client's secret must not go to an unencrypted endpoint if the provider is encrypted.
        if find_url_error(endpoint) or urlsplit(endpoint).scheme not in ("https", urlsplit(provider.issuer).scheme):
            raise ConfigurationError(f"{self._where}: the discovery document has no valid token_endpoint")
        return endpoint

    async def _refresh_tokens(
        self, session: aiohttp.ClientSession, endpoint: str, refresh_token: str, deadline: float
    ) -> None:
        async with asyncio.timeout_at(deadline):
            tokens = await self._request_tokens(session, endpoint, refresh_token)
        self._tokens.id_token, self._tokens.refresh_token = tokens.id_token, tokens.refresh_token

    async def _request_tokens(self, session: aiohttp.ClientSession, endpoint: str, refresh_token: str) -> _OidcTokens:
        provider = self._provider
        form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        # Providers expect the client's secret in a header or in the form, and not all of them publish which.
        status, response = await self._send_request(session, "POST", endpoint, form, basic=True)
        if status in (400, 401) and response.get("error") != "invalid_grant":
            status, response = await self._send_request(session, "POST", endpoint, form, basic=False)
        if status != 200:
            if status >= 500 or status == 429:
                raise NotConnectedError(f"{self._where} cannot refresh the token now: HTTP status {status}")
            reason = (
                _describe_error_code(response.get("error"), (refresh_token, provider.client_secret))
                or f"HTTP status {status}"
            )
            raise ConfigurationError(f"{self._where} does not refresh the token: {reason}. Log in again")
        id_token = response.get("id_token")
        if not (isinstance(id_token, str) and id_token and id_token.isascii() and id_token.isprintable()):
            raise ConfigurationError(f"{self._where} returned no id_token. It must grant the scope openid")
        return _OidcTokens(id_token, str(response.get("refresh_token") or refresh_token))

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
            # Each part must be URL-encoded first (RFC 6749, 2.3.1).
            pair = f"{quote_plus(provider.client_id)}:{quote_plus(provider.client_secret)}"
            headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode('ascii')}"
        elif data is not None:
            data |= {"client_id": provider.client_id, "client_secret": provider.client_secret}
        async with session.request(
            method, url, data=data, headers=headers, allow_redirects=False, proxy=provider.proxy_url or None
        ) as response:
            body = b""
            while (piece := await response.content.readany()) and len(body) <= _MAX_RESPONSE_BYTES:
                body += piece
            try:
                return response.status, msgspec.json.decode(body, type=dict)
            except DECODE_ERRORS:
                return response.status, {}

    def _build_ssl_context(self) -> ssl.SSLContext:
        if not self._provider.authority:
            return ssl.create_default_context()
        return build_ssl_context(TlsConfig(self._provider.authority), self._where)


def _describe_error_code(error: object, secrets: tuple[str, ...]) -> str:
    """Return the provider's error code (RFC 6749, 5.2); empty for any other text, which may quote the request."""
    if not (isinstance(error, str) and _ERROR_CODE.fullmatch(error)):
        return ""
    return "" if any(secret and secret in error for secret in secrets) else error


def _parse_token_expiry(token: str) -> datetime | None:
    """Parse the expiry of a JSON web token (RFC 7519, ``exp``). Only the server verifies the token."""
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
        raise ConfigurationError(f"{where}: idp-certificate-authority: expected a path") from None
