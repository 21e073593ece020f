"""Credentials that expire: renewed before they do, when the server refuses them, and by one caller for all.

`CredentialRenewer` decides nothing of how: the exec plug-in and the OpenID Connect provider are behind one function
each.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from konverge.client.credentials import Identity
from konverge.clock import Clock
from konverge.errors import ConfigurationError, NotConnectedError

__all__ = ["CredentialRenewer", "IssuedIdentity", "compute_renewal_time"]

# Before its end, what is valid is renewed: a minute before, or when four fifths of a shorter life are over.
_EARLY = timedelta(seconds=60)
_EARLY_SHARE = 0.2

# An issuer that hands out what has expired (by our clock) is not asked more often than this.
_AT_LEAST = timedelta(seconds=5)

# Who comes so soon after a failure shares it: a program that fails is not started once for each request.
_FAILURE_SECONDS = 5.0

# So soon after a renewal that a refusal had brought about, another refusal brings about none.
_REFUSAL_SECONDS = 10.0

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IssuedIdentity:
    """What was issued, and until when it is valid; None for as long as the server accepts it."""

    identity: Identity
    expires: datetime | None = None


def compute_renewal_time(issued: datetime, expires: datetime) -> datetime:
    """The moment from which on to look for a successor."""
    early = min(_EARLY, (expires - issued) * _EARLY_SHARE)
    return max(expires - early, issued + _AT_LEAST)


class CredentialRenewer:
    """Keeps what expires fresh. Of one event loop.

    Whoever finds that it is time renews while all others wait for that; when he is cancelled, the next one does. What
    is still valid serves on when it could not be renewed early.

    Args:
        renew: Asks the issuer.
        clock: Says when it is time.
        what: What is renewed, for messages.
        first: What was issued before.
    """

    def __init__(
        self,
        renew: Callable[[], Awaitable[IssuedIdentity]],
        clock: Clock,
        what: str,
        *,
        first: IssuedIdentity | None = None,
    ) -> None:
        self._renew = renew
        self._clock = clock
        self._description = what
        self._renewing = asyncio.Lock()
        self._issued: IssuedIdentity | None = None
        self._due: datetime | None = None
        self._is_refused = False
        self._refused_at: float | None = None
        self._failure: tuple[float, str, type[ConfigurationError] | type[NotConnectedError]] | None = None
        if first is not None:
            self._issued = first
            # Whatever it says: no date is before the first that there is.
            self._due = first.expires and max(first.expires, _EARLIEST) - _AT_LEAST

    async def get_identity(self) -> Identity:
        """What to show now.

        Raises:
            konverge.errors.ConfigurationError: It cannot be renewed, nor before somebody mends something.
            konverge.errors.NotConnectedError: It cannot be renewed now.
        """
        if self._is_due():
            async with self._renewing:
                if self._is_due():
                    await self._try_renew()
        assert self._issued is not None
        return self._issued.identity

    def invalidate(self, identity: Identity) -> bool:
        """Hear that the server did not accept it; tell whether the next may be accepted."""
        if self._issued is None or self._issued.identity is not identity:
            return True  # that one has been replaced since
        if self._is_refused:
            return True  # and will be
        now = self._clock.monotonic()
        if self._refused_at is not None and now - self._refused_at < _REFUSAL_SECONDS:
            return False
        self._is_refused, self._refused_at = True, now
        return True

    def _is_due(self) -> bool:
        if self._issued is None or self._is_refused:
            return True
        return self._due is not None and self._clock.now() >= self._due

    async def _try_renew(self) -> None:
        now = self._clock.monotonic()
        if self._failure is not None and now - self._failure[0] < _FAILURE_SECONDS:
            _, words, kind = self._failure
            if not self._is_still_valid():
                raise kind(words)
            return
        try:
            issued = await self._renew()
        except (ConfigurationError, NotConnectedError) as error:
            kind = ConfigurationError if isinstance(error, ConfigurationError) else NotConnectedError
            self._failure = (self._clock.monotonic(), str(error), kind)
            if not self._is_still_valid():
                raise
            _logger.warning(
                "%s could not be renewed, and are still valid for a little while: %s", self._description, error
            )
            return
        self._failure = None
        self._issued, self._is_refused = issued, False
        self._due = issued.expires and compute_renewal_time(self._clock.now(), issued.expires)

    def _is_still_valid(self) -> bool:
        issued = self._issued
        if issued is None or self._is_refused:
            return False
        return issued.expires is None or self._clock.now() < issued.expires
