"""What a failure of the network, or a status of HTTP, means for a resolution: one table for all sources over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from konverge_resolution.errors import ResolutionError
from konverge_resolution.network import (
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
from konverge_resolution.reasons import Reason
from konverge_resolution.resolver import FetchRequest, Setting
from konverge_resolution.resolver_settings import as_list

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
    "ca-certificates": Setting("Certificates (PEM) that are trusted besides the machine's"),
    "proxy": Setting("Who connects instead, such as http://proxy.example:3128; the environment is not asked"),
    "no-proxy": Setting("Hosts that are reached without it; .example.com for all below one", "list"),
}
"""Of every resolver that asks over HTTP."""

CA_CERTIFICATES_HINT = "setting 'ca-certificates' has those that are trusted besides the machine's"
"""How a certificate becomes one that is trusted."""

PLAIN_HTTP_HINT = "if it is meant to have none, write http:// in its address"
"""How a server without TLS is asked."""

_REASONS: dict[type[NetworkError], Reason] = {
    InvalidRequestError: Reason.INVALID_PARAMETERS,
    RefusedAddressError: Reason.DENIED,
    RefusedRedirectError: Reason.DENIED,
    HostUnreachableError: Reason.UNREACHABLE,
    UntrustedCertificateError: Reason.DENIED,  # as a host key of ssh that nobody knows
    NoTlsError: Reason.DENIED,
    BrokenConnectionError: Reason.UNREACHABLE,
    MalformedResponseError: Reason.UNREACHABLE,
    ResponseTooLargeError: Reason.TOO_LARGE,
}

_STATUSES: dict[int, tuple[Reason, str]] = {
    404: (Reason.NOT_FOUND, "is not found, or hidden"),
    407: (Reason.UNREACHABLE, "is behind a proxy that asks for a credential"),
    408: (Reason.UNREACHABLE, "waited too long"),
    410: (Reason.NOT_FOUND, "is not there any more"),
    429: (Reason.RATE_LIMITED, "is asked too often"),
}
_REFUSING = frozenset({401, 403})
_NO_CREDENTIAL = "asks for a credential, and none was given"
_BAD_CREDENTIAL = "does not accept the credential that was given"
_FORBIDDEN = "refuses this, with the credential that was given"
_HIDDEN = "refuses this to somebody without a credential"


class StatusResponse(Protocol):
    """What is looked at of an answer."""

    @property
    def status(self) -> int:
        """The status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names in lower case."""


def build_http_client(fetch: FetchRequest, *, name_address: AddressNamer | None = None) -> GuardedHttp:
    """What a resolver asks with, by its `CONNECTION_SETTINGS`.

    Args:
        fetch: The resolution.
        name_address: What policies call the place of a URL, where they have another name for it than the URL.

    Raises:
        ResolutionError: ``InvalidConfiguration``, naming the setting; or there is nothing to ask with.
    """
    http: GuardedHttp | None = fetch.services.http
    if http is None:
        raise ResolutionError(Reason.INTERNAL, "nobody has said how resolvers may ask over HTTP here")
    proxy = parse_proxy(fetch.settings)
    try:
        authorities = fetch.settings.get("ca-certificates", "")
        return http.with_settings(authorities=authorities, proxy=proxy, name_address=name_address)
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting 'ca-certificates': {error}") from None


def parse_proxy(settings: Mapping[str, str]) -> Proxy | None:
    """The proxy of `CONNECTION_SETTINGS`; None for none.

    Raises:
        ResolutionError: ``InvalidConfiguration``.
    """
    if not settings.get("proxy", "").strip():
        return None
    try:
        return Proxy.parse(settings["proxy"], direct=as_list(settings.get("no-proxy", "")))
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting 'proxy': {error}") from None


@contextmanager
def wrap_network_errors(source: str, *, without_tls: str = PLAIN_HTTP_HINT) -> Iterator[None]:
    """Make of failures of the network a `ResolutionError` about a source.

    Args:
        source: As the user knows it, without credentials, and at the beginning of a sentence.
        without_tls: How one that has no TLS is asked without it.
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
    """Let pass an answer that is a success (2xx).

    Args:
        response: What came.
        source: As the user knows it, without credentials.
        has_credential: Whether one was sent.
        now: The time, for a ``Retry-After`` that is a date.

    Raises:
        ResolutionError: It is another.
    """
    if not 200 <= response.status < 300:
        raise build_status_error(response, source, has_credential=has_credential, now=now)


def build_status_error(
    response: StatusResponse, source: str, *, has_credential: bool, now: datetime
) -> ResolutionError:
    """What a status other than success means; arguments as for `check_status`."""
    status = response.status
    pause = parse_retry_after(response.headers.get("retry-after", ""), now)
    if status == 403 and pause is not None:  # as some say 429
        reason, message = _STATUSES[429]
    elif status in _REFUSING:
        reason = Reason.DENIED if has_credential else Reason.AUTHENTICATION_REQUIRED
        message = {
            (401, False): _NO_CREDENTIAL,
            (401, True): _BAD_CREDENTIAL,
            (403, False): _HIDDEN,
            (403, True): _FORBIDDEN,
        }[status, has_credential]
    elif status in _STATUSES:
        reason, message = _STATUSES[status]
    elif status == 503:
        reason, message = Reason.UNREACHABLE, "is not available at the moment"
    elif status >= 500:
        reason, message = Reason.UNREACHABLE, "answers with an error of its own"
    else:
        reason, message = Reason.NOT_FOUND, "answers with something else than what was asked for"
    return ResolutionError(reason, f"{source} {message} (status {status})", retry_after_seconds=pause)
