"""Failure reasons for network errors and HTTP status codes, for all sources over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_statuses import CLIENT_ERRORS, OTHER_CLIENT_ERROR
from konverge_resolution._internal.network import (
    AddressNamer,
    BrokenConnectionError,
    GuardedHttp,
    HostUnreachableError,
    InvalidRequestError,
    MalformedResponseError,
    NetworkError,
    NoTlsError,
    Proxy,
    RefusedAddressError,
    RefusedRedirectError,
    ResponseTooLargeError,
    UntrustedCertificateError,
    parse_retry_after,
)
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolver import FetchRequest, Setting
from konverge_resolution._internal.resolver_settings import as_list

__all__ = [
    "CA_CERTIFICATES_HINT",
    "CONNECTION_SETTINGS",
    "PLAIN_HTTP_HINT",
    "build_http_client",
    "build_status_error",
    "check_status",
    "parse_proxy",
    "wrap_network_errors",
]

CONNECTION_SETTINGS: dict[str, Setting] = {
    "ca-certificates": Setting("Trusted certificates (PEM) besides those of the system"),
    "proxy": Setting("Proxy for all connections, such as http://proxy.example:3128; environment variables are ignored"),
    "no-proxy": Setting("Hosts without the proxy; .example.com includes all subdomains", "list"),
}
"""Settings of every resolver that uses HTTP."""

CA_CERTIFICATES_HINT = "add its certificate authority to setting 'ca-certificates'"
"""How to trust another certificate."""

PLAIN_HTTP_HINT = "use an http:// address for a server without TLS"
"""How to use a server without TLS."""

_REASONS: dict[type[NetworkError], Reason] = {
    InvalidRequestError: Reason.INVALID_PARAMETERS,
    RefusedAddressError: Reason.DENIED,
    RefusedRedirectError: Reason.DENIED,
    HostUnreachableError: Reason.UNREACHABLE,
    UntrustedCertificateError: Reason.DENIED,  # like an unknown SSH host key
    NoTlsError: Reason.DENIED,
    BrokenConnectionError: Reason.UNREACHABLE,
    MalformedResponseError: Reason.UNREACHABLE,
    ResponseTooLargeError: Reason.TOO_LARGE,
}

_REFUSING = frozenset({401, 403})
_NO_CREDENTIAL = "requires a credential, but the request had none"
_BAD_CREDENTIAL = "rejects the credential of the request"
_FORBIDDEN = "forbids this for the credential of the request"
_HIDDEN = "forbids this without a credential"


class StatusResponse(Protocol):
    """Part of an HTTP response that its check needs."""

    @property
    def status(self) -> int:
        """HTTP status code of the response."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by name in lower case."""


def build_http_client(fetch: FetchRequest, *, name_address: AddressNamer | None = None) -> GuardedHttp:
    """Build the HTTP client of a resolver from its `CONNECTION_SETTINGS`.

    Args:
        fetch: The resolution.
        name_address: Returns the name that policies use for a URL, where it differs from the URL.

    Raises:
        ResolutionError: ``InvalidConfiguration`` with the name of the setting; ``Internal``: there is no HTTP client.
    """
    http: GuardedHttp | None = fetch.services.http
    if http is None:
        raise ResolutionError(Reason.INTERNAL, "the services have no HTTP client")
    proxy = parse_proxy(fetch.settings)
    try:
        authorities = fetch.settings.get("ca-certificates", "")
        return http.with_settings(authorities=authorities, proxy=proxy, name_address=name_address)
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting 'ca-certificates': {error}") from None


def parse_proxy(settings: Mapping[str, str]) -> Proxy | None:
    """Return the proxy of `CONNECTION_SETTINGS`; None without one.

    Raises:
        ResolutionError: ``InvalidConfiguration``: the address of the proxy is invalid.
    """
    if not settings.get("proxy", "").strip():
        return None
    try:
        return Proxy.parse(settings["proxy"], direct=as_list(settings.get("no-proxy", "")))
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting 'proxy': {error}") from None


@contextmanager
def wrap_network_errors(source: str, *, without_tls: str = PLAIN_HTTP_HINT) -> Iterator[None]:
    """Convert network errors of the block to a `ResolutionError` about a source.

    Args:
        source: The source as the user knows it, without credentials, at the beginning of the message.
        without_tls: Hint for a source without TLS.
    """
    try:
        yield
    except NetworkError as error:
        reason = _REASONS.get(type(error), Reason.UNREACHABLE)
        hints: dict[type[NetworkError], str] = {
            UntrustedCertificateError: CA_CERTIFICATES_HINT,
            NoTlsError: without_tls,
        }
        hint = hints.get(type(error), "")
        raise ResolutionError(reason, f"{source} {error.problem}{hint and '; '}{hint}") from None


def check_status(response: StatusResponse, source: str, *, has_credential: bool, now: datetime) -> None:
    """Accept a response with a success status (2xx).

    Args:
        response: The response.
        source: The source as the user knows it, without credentials.
        has_credential: Whether the request had a credential.
        now: The current time, for a ``Retry-After`` that is a date.

    Raises:
        ResolutionError: The response has another status.
    """
    if not 200 <= response.status < 300:
        raise build_status_error(response, source, has_credential=has_credential, now=now)


def build_status_error(
    response: StatusResponse, source: str, *, has_credential: bool, now: datetime
) -> ResolutionError:
    """Return the error for a status other than success; arguments as for `check_status`."""
    status = response.status
    pause = parse_retry_after(response.headers.get("retry-after", ""), now)
    if status == 403 and pause is not None:  # some servers use it like 429
        reason, message = CLIENT_ERRORS[429]
    elif status in _REFUSING:
        reason = Reason.DENIED if has_credential else Reason.AUTHENTICATION_REQUIRED
        message = {
            (401, False): _NO_CREDENTIAL,
            (401, True): _BAD_CREDENTIAL,
            (403, False): _HIDDEN,
            (403, True): _FORBIDDEN,
        }[status, has_credential]
    elif 400 <= status < 500:
        reason, message = CLIENT_ERRORS.get(status, OTHER_CLIENT_ERROR)
    elif status == 503:
        reason, message = Reason.UNREACHABLE, "is temporarily unavailable"
    elif status >= 500:
        reason, message = Reason.UNREACHABLE, "reports an internal error"
    else:
        reason, message = Reason.NOT_FOUND, "returns an unexpected response"
    return ResolutionError(reason, f"{source} {message} (status {status})", retry_after_seconds=pause)
