"""What a failure of the network, or a status of HTTP, means for a resolution: one table for all sources over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from konverge.network import (
    BrokenConnectionError,
    InvalidRequestError,
    MalformedAnswerError,
    NetworkError,
    RefusedAddressError,
    RefusedRedirectError,
    TooLargeError,
    UnreachableError,
    UntrustedError,
    wanted_pause,
)
from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason

__all__ = ["check_status", "failures_of", "status_failure"]

_REASONS: dict[type[NetworkError], Reason] = {
    InvalidRequestError: Reason.INVALID_PARAMETERS,
    RefusedAddressError: Reason.DENIED,
    RefusedRedirectError: Reason.DENIED,
    UnreachableError: Reason.UNREACHABLE,
    UntrustedError: Reason.UNREACHABLE,
    BrokenConnectionError: Reason.UNREACHABLE,
    MalformedAnswerError: Reason.UNREACHABLE,
    TooLargeError: Reason.TOO_LARGE,
}

_STATUSES: dict[int, tuple[Reason, str]] = {
    404: (Reason.NOT_FOUND, "does not have it, or hides it"),
    407: (Reason.UNREACHABLE, "is behind a proxy that asks for a credential"),
    408: (Reason.UNREACHABLE, "waited too long"),
    410: (Reason.NOT_FOUND, "does not have it any more"),
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


@contextmanager
def failures_of(source: str) -> Iterator[None]:
    """Make of failures of the network a `ResolutionError` about a source.

    Args:
        source: As the user knows it, without credentials, and at the beginning of a sentence.
    """
    try:
        yield
    except NetworkError as error:
        raise ResolutionError(_REASONS.get(type(error), Reason.UNREACHABLE), f"{source} {error.problem}") from None


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
