"""Classification of failed reconciles: outcome, retry, traceback. Pure."""

from __future__ import annotations

import asyncio

from konverge._internal.runtime.controller_observer import ReconcileOutcome
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    KindNotServedError,
    KonvergeError,
    NoPermitError,
    TerminalError,
    iter_causes,
)

__all__ = [
    "ReconcileTimeoutError",
    "classify_failure",
    "explain_cancellation",
    "is_author_error",
    "is_cluster_error",
]


class ReconcileTimeoutError(KonvergeError):
    """A reconcile was cancelled because it exceeded its time limit."""


def classify_failure(error: BaseException) -> ReconcileOutcome:
    """Return the outcome of a reconcile that failed with the error.

    Returns:
        `ABANDONED` if the replica lost its permit to write: the replica that holds the permit now reconciles the key.
        `TERMINAL` if a retry is useless before the next change. `TIMEOUT` and `ERROR` are retried after a backoff.
    """
    if _lacks_permit(error):
        return ReconcileOutcome.ABANDONED
    if _is_terminal(error):
        return ReconcileOutcome.TERMINAL
    return ReconcileOutcome.TIMEOUT if isinstance(error, ReconcileTimeoutError) else ReconcileOutcome.ERROR


def explain_cancellation(error: asyncio.CancelledError, *, is_requested: bool) -> KonvergeError:
    """Return the failure of a reconcile that ended with a cancellation that the controller did not request.

    Args:
        error: The cancellation.
        is_requested: Whether the task of the reconcile was cancelled, rather than a future that it awaited.
    """
    if is_requested:
        return KonvergeError("the reconcile cancelled its own task")
    failure = KonvergeError("the reconcile awaited something that was cancelled")
    failure.__cause__ = error
    return failure


def is_author_error(error: BaseException) -> bool:
    """Return whether a traceback helps: the messages of konverge's errors and of the cluster's are sufficient."""
    for cause in iter_causes(error):
        if isinstance(cause, BaseExceptionGroup):
            return any(is_author_error(single) for single in cause.exceptions)
        if not isinstance(cause, KonvergeError):
            return True
        if isinstance(cause, ApiError | ConnectionFailedError):
            return False
    return False


def is_cluster_error(error: BaseException) -> bool:
    """Return whether the cluster refused a request or did not respond: no event reports the end of that state."""
    if isinstance(error, BaseExceptionGroup):
        return any(is_cluster_error(single) for single in error.exceptions)
    return any(isinstance(cause, ApiError | ConnectionFailedError | KindNotServedError) for cause in iter_causes(error))


def _lacks_permit(error: BaseException) -> bool:
    """Return whether the reconcile ended because the replica lost the permit to write while it ran."""
    if isinstance(error, BaseExceptionGroup):
        return any(_lacks_permit(single) for single in error.exceptions)
    return any(isinstance(cause, NoPermitError) for cause in iter_causes(error))


def _is_terminal(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_terminal(single) for single in error.exceptions)
    return isinstance(error, TerminalError)
