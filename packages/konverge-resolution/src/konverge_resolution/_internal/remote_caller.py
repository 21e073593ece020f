"""Calls of remotes: limited concurrency per remote, and retries after transient failures.

Every exception of a resolver becomes a `ResolutionError`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from konverge._internal.backoff import Backoff
from konverge.clock import Clock, Entropy
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.fetch_progress import FetchProgress
from konverge_resolution._internal.network import ConcurrencyLimiter
from konverge_resolution._internal.reasons import Reason

__all__ = ["RemoteCaller", "parse_origin", "wrap_resolver_errors"]

T = TypeVar("T")

_log = logging.getLogger("konverge.resolution")

_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=10.0)
_LONGEST_PAUSE_SECONDS = 60.0
_MAX_PER_REMOTE, _MAX_CONCURRENT = 8, 96
_MAX_PER_NAMESPACE = (4, 64)


class RemoteCaller:
    """Caller of remotes with limits and retries; shared by all resolutions of an engine.

    Args:
        clock: The clock.
        entropy: Source of the jitter of retry delays.
        bounds: Limits on concurrent calls by remote and namespace (default: 8 per remote and 96 in total; one namespace
            may use 4 and 64).
    """

    def __init__(self, clock: Clock, entropy: Entropy, bounds: ConcurrencyLimiter[str] | None = None) -> None:
        self._clock = clock
        self._entropy = entropy
        if bounds is None:
            bounds = ConcurrencyLimiter(_MAX_PER_REMOTE, _MAX_CONCURRENT, per_tenant=_MAX_PER_NAMESPACE)
        self._bounds = bounds

    async def call(
        self,
        work: Callable[[], Awaitable[T]],
        *,
        resolver: str,
        remote: str,
        namespace: str,
        attempts: int,
        progress: FetchProgress,
    ) -> tuple[T, int]:
        """Call one remote within its limits; retry transient failures with backoff.

        Args:
            work: One call of the remote.
            resolver: The name of the resolver, for messages.
            remote: The origin of the remote, from `parse_origin`.
            namespace: The namespace of the requester.
            attempts: Maximum number of calls.
            progress: Receives the retries.

        Returns:
            The result of the call, and the number of calls.

        Raises:
            ResolutionError: The last call failed, or the failure is not transient.
        """
        calls = 0
        while True:
            calls += 1
            progress.wait_for_slot()
            try:
                async with self._bounds.slot(remote, namespace):
                    with wrap_resolver_errors(resolver):
                        return await work(), calls
            except ResolutionError as error:
                if not error.traits.is_transient or calls >= attempts:
                    raise
                pause = _BACKOFF.compute_delay(calls, self._entropy)
                if error.retry_after_seconds is not None:
                    pause = max(pause, min(error.retry_after_seconds, _LONGEST_PAUSE_SECONDS))
                progress.record_retry(error.reason, error.message, pause)
            await self._clock.sleep(pause)


@contextmanager
def wrap_resolver_errors(resolver: str) -> Iterator[None]:
    """Convert every exception of a resolver to a `ResolutionError`.

    The message and the log have only the type: the text of the exception can contain secrets.
    """
    try:
        yield
    except ResolutionError:
        raise
    except Exception as error:  # third-party code can raise anything
        _log.error("resolver %s failed: %s", resolver, type(error).__name__)
        raise ResolutionError(Reason.INTERNAL, f"resolver {resolver!r} failed: {type(error).__name__}") from error


def parse_origin(uri: str) -> str:
    """Return the origin of an address (scheme, host and port), which limits apply to."""
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}"
