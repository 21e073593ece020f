"""The rules for repeating a failed request, and the delay before it.

A request is repeated only if the server cannot have acted on it, or if a repetition has no further effect. These are a
connection that was never opened, a rejection with a time (429 and 503 with ``Retry-After``), and reads. A write with an
unknown result (after a broken connection, or the error of an intermediary) is left to the next reconcile, which reads
first. A repetition here could create a second object for a generated name, or delete the successor of an object.
"""

from __future__ import annotations

from konverge._internal.backoff import Backoff
from konverge.clock import Entropy
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    KonvergeError,
    NotConnectedError,
    UntrustedServerError,
)

__all__ = ["is_retryable", "retry_delay"]

_BUSY = frozenset({429, 503})
_TRANSIENT = frozenset({429, 502, 503, 504})


def is_retryable(method: str, failure: KonvergeError) -> bool:
    """Return True if the same request may be sent again."""
    if isinstance(failure, NotConnectedError):
        return True
    if isinstance(failure, UntrustedServerError):
        return False
    if isinstance(failure, ConnectionFailedError):
        return method == "GET"
    if isinstance(failure, ApiError):
        if failure.code in _BUSY and failure.retry_after_seconds is not None:
            return True
        is_temporary = failure.code in _TRANSIENT or (failure.code >= 500 and failure.retry_after_seconds is not None)
        return method == "GET" and is_temporary
    return False


def retry_delay(
    method: str, failure: KonvergeError, *, failures: int, attempts: int, backoff: Backoff, entropy: Entropy
) -> float | None:
    """Return the delay in seconds before the next attempt; None if the request must not be repeated.

    Args:
        method: The HTTP method.
        failure: The error of the last attempt.
        failures: The number of failed attempts, including the last one.
        attempts: The maximum number of attempts.
        backoff: The backoff; a longer ``Retry-After`` takes precedence, with jitter.
        entropy: The source of jitter.
    """
    if failures >= attempts or not is_retryable(method, failure):
        return None
    delay = backoff.compute_delay(failures, entropy)
    requested = failure.retry_after_seconds if isinstance(failure, ApiError) else None
    if requested is not None:
        delay = max(delay, requested * entropy.uniform(1.0, 1.0 + backoff.jitter))
    return delay
