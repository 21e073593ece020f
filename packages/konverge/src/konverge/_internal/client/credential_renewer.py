"""The renewal of credentials: before they expire, after the server rejects them, and by one caller for all.

`CredentialRenewer` calls one function for the renewal itself: it runs the exec plug-in, or calls the OpenID Connect
provider.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from konverge._internal.client.credentials import Identity
from konverge.clock import Clock
from konverge.errors import ConfigurationError, NotConnectedError

__all__ = ["CredentialRenewer", "IssuedIdentity", "compute_renewal_time"]

# Credentials are renewed a minute before they expire, or after four fifths of a shorter lifetime.
_EARLY = timedelta(seconds=60)
_EARLY_SHARE = 0.2

# The minimum interval between renewals from an issuer whose credentials have expired already (by the local clock).
_AT_LEAST = timedelta(seconds=5)

# Callers share a failure for this time: a failing program is not started once for each request.
_FAILURE_SECONDS = 5.0

# For this time after the server rejected credentials, another rejection does not cause a renewal.
_REFUSAL_SECONDS = 10.0

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)

_logger = logging.getLogger("konverge.client")


@dataclass(frozen=True, slots=True)
class IssuedIdentity:
    """An identity from an issuer with its expiry; None for an identity that is valid until the server rejects it."""

    identity: Identity
    expires: datetime | None = None


def compute_renewal_time(issued: datetime, expires: datetime) -> datetime:
    """Return the time from which the credentials are to be renewed."""
    early = min(_EARLY, (expires - issued) * _EARLY_SHARE)
    return max(expires - early, issued + _AT_LEAST)


class CredentialRenewer:
    """The renewal of expiring credentials, for one event loop.

    The first caller that finds a renewal due performs it while all others wait. If that caller is cancelled, the next
    one renews. If an early renewal fails, the present credentials stay in use until they expire.

    Args:
        renew: The function that requests new credentials.
        clock: The source of time.
        what: The description of the credentials, for messages.
        first: The credentials that were issued before.
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
            # Python cannot subtract below its minimum date, so limit an absurdly early expiry.
            self._due = first.expires and max(first.expires, _EARLIEST) - _AT_LEAST

    async def get_identity(self) -> Identity:
        """Return the present identity; renew it first if necessary.

        Raises:
            konverge.errors.ConfigurationError: The renewal fails until a user corrects the configuration.
            konverge.errors.NotConnectedError: The renewal fails now.
        """
        if self._is_due():
            async with self._renewing:
                if self._is_due():
                    await self._try_renew()
        assert self._issued is not None
        return self._issued.identity

    def invalidate(self, identity: Identity) -> bool:
        """Record that the server rejected the identity; return True if the next one may be accepted."""
        if self._issued is None or self._issued.identity is not identity:
            return True  # it was replaced since
        if self._is_refused:
            return True  # it will be replaced
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
            _, message, error_class = self._failure
            if not self._is_still_valid():
                raise error_class(message)
            return
        try:
            issued = await self._renew()
        except (ConfigurationError, NotConnectedError) as error:
            error_class = ConfigurationError if isinstance(error, ConfigurationError) else NotConnectedError
            self._failure = (self._clock.monotonic(), str(error), error_class)
            if not self._is_still_valid():
                raise
            _logger.warning(
                "%s: the renewal failed; using the present credentials until they expire: %s", self._description, error
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
