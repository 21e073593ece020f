"""The start of a process against a server that may not work yet: each step is tried again until it succeeds.

An API server answers oddly right after its own start: 500 and 503 on discovery, 401 and 403 before its authorizers have
read the roles, 404 for kinds whose definitions it has not read yet. A process that ended by one such answer would need
somebody to start it again. So a step is tried again, with growing pauses, and each failure is logged with the request
and the step. What lasts for longer than the limit is no such phase, and ends the start.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from konverge.backoff import Backoff
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
"""How long a step of the start is tried again: far longer than an API server takes to start."""

_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=15.0)


class StartSteps:
    """Runs the steps of one start.

    Args:
        clock: The time.
        entropy: Draws the jitter of pauses.
        timeout: How long each step is tried again, counted from its first attempt; zero ends it with the first failure.

    Attributes:
        waiting_for: The step that has failed and will be tried again; empty when there is none.
    """

    def __init__(self, *, clock: Clock, entropy: Entropy, timeout: timedelta = DEFAULT_START_TIMEOUT) -> None:
        self._clock = clock
        self._entropy = entropy
        self._timeout_seconds = timeout.total_seconds()
        self.waiting_for = ""

    async def run_step(self, step: str, attempt: Callable[[], Awaitable[T]]) -> T:
        """Run a step until it succeeds; cancelling it cancels the attempt.

        Args:
            step: What is being done, for example ``listing apps/v1/Deployment``.
            attempt: Does it; safe to repeat.

        Returns:
            The attempt's result.

        Raises:
            konverge.errors.StartError: The server has refused it, or not answered, until the limit had passed.
            konverge.errors.UntrustedServerError: The server's certificate, or ours, cannot be used.
        """
        end = self._clock.monotonic() + self._timeout_seconds
        failures = 0
        while True:
            try:
                result = await attempt()
            except UntrustedServerError:
                raise  # somebody has to mend a certificate first
            except (ApiError, ConnectionFailedError, KindNotServedError) as error:
                failures += 1
                now = self._clock.monotonic()
                if now >= end:
                    raise StartError(self._describe_give_up(step, error)) from error
                seconds = min(_BACKOFF.compute_delay(failures, self._entropy), end - now)
                self.waiting_for = step
                _log.log(
                    logging.ERROR if _is_refused(error) else logging.WARNING,
                    "%s failed: %s; tried again in %.2g s, and given up in %.0f s",
                    step, describe_failure(error), seconds, end - now,
                )  # fmt: skip
            else:
                self.waiting_for = ""
                return result
            await self._clock.sleep(seconds)

    def _describe_give_up(self, step: str, error: KonvergeError) -> str:
        tried = f"in {self._timeout_seconds:g} s of trying" if self._timeout_seconds else "at the first attempt"
        return f"{step} has not succeeded {tried}: {describe_failure(error)}"


def describe_failure(error: KonvergeError) -> str:
    """What went wrong, with the request that the server refused, and what to do about a missing permission."""
    text = format_error_with_request(error)
    if _is_refused(error):
        text += ". If this lasts, a permission is missing: konverge rbac prints the roles that the operator needs"
    return text


def _is_refused(error: KonvergeError) -> bool:
    return any(isinstance(cause, ForbiddenError) for cause in iter_causes(error))
