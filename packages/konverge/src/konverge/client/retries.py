"""When a failed request is sent again, and after which pause.

Again only where the server cannot have acted on it, or where acting twice is acting once: a connection that never came
about, a refusal that names a time to come back (429 and 503 with ``Retry-After``), and plain reads. A write that an
intermediary or a broken connection leaves in doubt is for the next pass, which looks first: repeated here, a create
with a generated name would make a second object, and a delete hit the successor.
"""

from __future__ import annotations

from konverge.backoff import Backoff
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
    """Tell whether the same request may be sent again."""
    if isinstance(failure, NotConnectedError):
        return True
    if isinstance(failure, UntrustedServerError):
        return False
    if isinstance(failure, ConnectionFailedError):
        return method == "GET"
    if isinstance(failure, ApiError):
        if failure.code in _BUSY and failure.retry_after_seconds is not None:
            return True
        is_passing = failure.code in _TRANSIENT or (failure.code >= 500 and failure.retry_after_seconds is not None)
        return method == "GET" and is_passing
    return False


def retry_delay(
    method: str, failure: KonvergeError, *, failures: int, attempts: int, backoff: Backoff, entropy: Entropy
) -> float | None:
    """How many seconds to wait before sending again; None when it should not be.

    Args:
        method: The HTTP method.
        failure: What came of the last attempt.
        failures: How many attempts have failed, that one included.
        attempts: How many attempts there may be in all.
        backoff: The pauses; a ``Retry-After`` that is longer is honoured, with jitter.
        entropy: What draws the jitter.
    """
    if failures >= attempts or not is_retryable(method, failure):
        return None
    pause = backoff.compute_delay(failures, entropy)
    wanted = failure.retry_after_seconds if isinstance(failure, ApiError) else None
    if wanted is not None:
        pause = max(pause, wanted * entropy.uniform(1.0, 1.0 + backoff.jitter))
    return pause
