"""Asking remotes: a few at once of each, and again where one may answer later.

Whatever a resolver raises comes out of here as a `ResolutionError`.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from konverge.client.retries import Backoff
from konverge.clock import Clock, Entropy
from konverge_resolution.errors import ResolutionError
from konverge_resolution.network import ConcurrencyLimiter
from konverge_resolution.reasons import Reason

__all__ = ["RemoteCaller", "parse_origin", "wrap_resolver_errors"]

T = TypeVar("T")

_log = logging.getLogger("konverge.resolution")

_BACKOFF = Backoff(first_seconds=0.5, cap_seconds=10.0)
_LONGEST_PAUSE_SECONDS = 60.0
_MAX_PER_REMOTE, _MAX_CONCURRENT = 8, 96
_MAX_PER_NAMESPACE = (4, 64)


class RemoteCaller:
    """Asks remotes for everybody who shares an engine.

    Args:
        clock: The time.
        entropy: Draws the jitter of pauses.
        bounds: How much is asked at once, by remote and namespace; eight of a remote and 96 in all when not given, of
            which one namespace has four and 64.
    """

    def __init__(self, clock: Clock, entropy: Entropy, bounds: ConcurrencyLimiter[str] | None = None) -> None:
        self._clock = clock
        self._entropy = entropy
        if bounds is None:
            bounds = ConcurrencyLimiter(_MAX_PER_REMOTE, _MAX_CONCURRENT, per_tenant=_MAX_PER_NAMESPACE)
        self._bounds = bounds

    async def call(
        self, work: Callable[[], Awaitable[T]], *, resolver: str, remote: str, namespace: str, attempts: int
    ) -> tuple[T, int]:
        """Ask one remote, again where it may answer later, within the places that it has.

        Args:
            work: Asks once.
            resolver: Whose code that is, for messages.
            remote: Where, as `parse_origin` says.
            namespace: For whom.
            attempts: How often at most.

        Returns:
            What it answered, and how often it was asked.

        Raises:
            ResolutionError: It did not answer, or the resolver failed.
        """
        made = 0
        while True:
            made += 1
            try:
                async with self._bounds.slot(remote, namespace):
                    with wrap_resolver_errors(resolver):
                        return await work(), made
            except ResolutionError as error:
                if not error.traits.is_transient or made >= attempts:
                    raise
                pause = _BACKOFF.compute_delay(made, self._entropy)
                if error.retry_after_seconds is not None:
                    pause = max(pause, min(error.retry_after_seconds, _LONGEST_PAUSE_SECONDS))
            await self._clock.sleep(pause)


@contextmanager
def wrap_resolver_errors(resolver: str) -> Iterator[None]:
    """Make of whatever a resolver raises a `ResolutionError`.

    Told by type alone, in the log too: its text can have what the resolver was given.
    """
    try:
        yield
    except ResolutionError:
        raise
    except Exception as error:  # anybody's code, and the error goes on as one of ours
        _log.error("resolver %s failed: %s", resolver, type(error).__name__)
        raise ResolutionError(Reason.INTERNAL, f"resolver {resolver!r} failed: {type(error).__name__}") from error


def parse_origin(uri: str) -> str:
    """What shares one remote's places: scheme, host and port."""
    found = urlsplit(uri)
    return f"{found.scheme}://{found.netloc}"
