"""What a failure of the network, or a status of HTTP, means for a resolution: one table for all sources over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from konverge.network import (
    BrokenConnectionError,
    GuardedHttp,
    InvalidRequestError,
    MalformedAnswerError,
    NameAddress,
    NetworkError,
    NoTlsError,
    Proxy,
    RefusedAddressError,
    RefusedRedirectError,
    TooLargeError,
    UnreachableError,
    UntrustedError,
    wanted_pause,
)
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.resolver import Fetch, Setting
from konverge.resolution.settings import as_list

__all__ = [
    "CONNECTION_SETTINGS",
    "MORE_AUTHORITIES",
    "PLAIN_ADDRESS",
    "check_status",
    "failures_of",
    "http_of",
    "proxy_of",
    "status_failure",
]

CONNECTION_SETTINGS: dict[str, Setting] = {
    "ca-certificates": Setting("Certificates (PEM) that are trusted besides the machine's"),
    "proxy": Setting("Who connects instead, such as http://proxy.example:3128; the environment is not asked"),
    "no-proxy": Setting("Hosts that are reached without it; .example.com for all below one", "list"),
}
"""Of every resolver that asks over HTTP."""

MORE_AUTHORITIES = "setting 'ca-certificates' has those that are trusted besides the machine's"
"""How a certificate becomes one that is trusted."""

PLAIN_ADDRESS = "if it is meant to have none, write http:// in its address"
"""How a server without TLS is asked."""

_REASONS: dict[type[NetworkError], Reason] = {
    InvalidRequestError: Reason.INVALID_PARAMETERS,
    RefusedAddressError: Reason.DENIED,
    RefusedRedirectError: Reason.DENIED,
    UnreachableError: Reason.UNREACHABLE,
    UntrustedError: Reason.DENIED,  # as a host key of ssh that nobody knows
    NoTlsError: Reason.DENIED,
    BrokenConnectionError: Reason.UNREACHABLE,
    MalformedAnswerError: Reason.UNREACHABLE,
    TooLargeError: Reason.TOO_LARGE,
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


class Answered(Protocol):
    """What is looked at of an answer."""

    @property
    def status(self) -> int:
        """The status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names in lower case."""


def http_of(fetch: Fetch, *, name_address: NameAddress | None = None) -> GuardedHttp:
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
    proxy = proxy_of(fetch.settings)
    try:
        authorities = fetch.settings.get("ca-certificates", "")
        return http.adapted(authorities=authorities, proxy=proxy, name_address=name_address)
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_CONFIGURATION, f"setting 'ca-certificates': {error}") from None


def proxy_of(settings: Mapping[str, str]) -> Proxy | None:
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
def failures_of(source: str, *, without_tls: str = PLAIN_ADDRESS) -> Iterator[None]:
    """Make of failures of the network a `ResolutionError` about a source.

    Args:
        source: As the user knows it, without credentials, and at the beginning of a sentence.
        without_tls: How one that has no TLS is asked without it.
    """
    try:
        yield
    except NetworkError as error:
        reason = _REASONS.get(type(error), Reason.UNREACHABLE)
        hints: dict[type[NetworkError], str] = {UntrustedError: MORE_AUTHORITIES, NoTlsError: without_tls}
        hint = hints.get(type(error), "")
        raise ResolutionError(reason, f"{source} {error.problem}{hint and '; '}{hint}") from None


def check_status(answer: Answered, source: str, *, has_credential: bool, now: datetime) -> None:
    """Let pass an answer that is a success (2xx).

    Args:
        answer: What came.
        source: As the user knows it, without credentials.
        has_credential: Whether one was sent.
        now: The time, for a ``Retry-After`` that is a date.

    Raises:
        ResolutionError: It is another.
    """
    if not 200 <= answer.status < 300:
        raise status_failure(answer, source, has_credential=has_credential, now=now)


def status_failure(answer: Answered, source: str, *, has_credential: bool, now: datetime) -> ResolutionError:
    """What a status other than success means; arguments as for `check_status`."""
    status = answer.status
    pause = wanted_pause(answer.headers.get("retry-after", ""), now)
    if status == 403 and pause is not None:  # as some say 429
        reason, told = _STATUSES[429]
    elif status in _REFUSING:
        reason = Reason.DENIED if has_credential else Reason.AUTHENTICATION_REQUIRED
        told = {
            (401, False): _NO_CREDENTIAL,
            (401, True): _BAD_CREDENTIAL,
            (403, False): _HIDDEN,
            (403, True): _FORBIDDEN,
        }[status, has_credential]
    elif status in _STATUSES:
        reason, told = _STATUSES[status]
    elif status == 503:
        reason, told = Reason.UNREACHABLE, "is not available at the moment"
    elif status >= 500:
        reason, told = Reason.UNREACHABLE, "answers with an error of its own"
    else:
        reason, told = Reason.NOT_FOUND, "answers with something else than what was asked for"
    return ResolutionError(reason, f"{source} {told} (status {status})", retry_after_seconds=pause)
