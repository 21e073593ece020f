"""The start of a process against a server that may not work yet: each step is retried until it succeeds.

An API server returns unusual errors right after its own start: 500 and 503 on discovery, 401 and 403 before its
authorizers have read the roles, 404 for kinds whose definitions it has not read yet. A process that ended after one
such response would need a restart by a user. A step is therefore retried, with growing delays, and each failure is
logged with the request and the step. A failure that lasts longer than the limit has another cause, and ends the start.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from konverge._internal.backoff import Backoff
from konverge.clock import Clock, Entropy
from konverge.errors import (
    ApiError,
    ConnectionFailedError,
    ForbiddenError,
    KindNotServedError,
    KonvergeError,
    StartError,
    UntrustedServerError,
    format_error_with_request,
    iter_causes,
)

__all__ = ["DEFAULT_START_TIMEOUT", "StartSteps", "describe_failure"]

T = TypeVar("T")

_log = logging.getLogger("konverge.runtime")

DEFAULT_START_TIMEOUT = timedelta(minutes=5)
"""Time for which a step of the start is retried: far longer than an API server takes to start."""

_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=15.0)


class StartSteps:
    """Runs the steps of one start.

    Args:
        clock: Source of time.
        entropy: Source of the jitter of delays.
        timeout: Time for which each step is retried, from its first attempt; zero ends the start with the first
            failure.

    Attributes:
        waiting_for: The failed step that will be retried; empty for none.
    """

    def __init__(self, *, clock: Clock, entropy: Entropy, timeout: timedelta = DEFAULT_START_TIMEOUT) -> None:
        self._clock = clock
        self._entropy = entropy
        self._timeout_seconds = timeout.total_seconds()
        self.waiting_for = ""

    async def run_step(self, step: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run a step until it succeeds; cancellation cancels the attempt.

        Args:
            step: Description of the step, for example ``listing apps/v1/Deployment``.
            attempt: Performs the step; safe to repeat.

        Returns:
            The attempt's result.

        Raises:
            konverge.errors.StartError: The server refused the step, or did not respond, until the limit had passed.
            konverge.errors.UntrustedServerError: The certificate of the server or of the client is invalid.
        """
        end = self._clock.monotonic() + self._timeout_seconds
        failures = 0
        while True:
            try:
                result = await attempt()
            except UntrustedServerError:
                raise  # a user must repair a certificate first
            except (ApiError, ConnectionFailedError, KindNotServedError) as error:
                failures += 1
                now = self._clock.monotonic()
                if now >= end:
                    raise StartError(self._describe_give_up(step, error)) from error
                seconds = min(_BACKOFF.compute_delay(failures, self._entropy), end - now)
                self.waiting_for = step
                _log.log(
                    logging.ERROR if _is_refused(error) else logging.WARNING,
                    "%s failed: %s; retry in %.2g s, giving up in %.0f s",
                    step, describe_failure(error), seconds, end - now,
                )  # fmt: skip
            else:
                self.waiting_for = ""
                return result
            await self._clock.sleep(seconds)

    def _describe_give_up(self, step: str, error: KonvergeError) -> str:
        limit = f"for {self._timeout_seconds:g} s" if self._timeout_seconds else "at the first attempt"
        return f"{step} failed {limit}: {describe_failure(error)}"


def describe_failure(error: KonvergeError) -> str:
    """Return the failure with the refused request, and with the remedy for a missing permission."""
    text = format_error_with_request(error)
    if _is_refused(error):
        text += ". If this persists, a permission is missing: konverge rbac prints the required roles"
    return text


def _is_refused(error: KonvergeError) -> bool:
    return any(isinstance(cause, ForbiddenError) for cause in iter_causes(error))
