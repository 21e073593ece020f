"""Credentials: the proof of a user's identity for the server. No representation and no message contains them.

This module contains constant credentials and the token in a file; `client.exec_credentials` and
`client.oidc` fetch credentials.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from konverge.clock import Clock
from konverge.errors import ConfigurationError

__all__ = [
    "AnonymousCredentials",
    "BasicAuth",
    "BearerToken",
    "Credentials",
    "Identity",
    "TokenFile",
    "is_header_value",
]

_logger = logging.getLogger("konverge.client")

_REREAD_SECONDS = 60.0
"""The interval of reads; the kubelet renews a projected token after 80 % of its life, at least two minutes early."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity for one request.

    Args:
        headers: The headers to send.
        certificate: The client certificate (PEM) that replaces the configured one; empty for the configured one.
        key: The private key (PEM) of the certificate.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def from_token(cls, token: str) -> Identity:
        """Return the identity with that bearer token.

        Raises:
            konverge.errors.ConfigurationError: The token has invalid characters for a header.
        """
        if not _is_token(token):
            raise ConfigurationError("token: expected one line of printable ASCII characters, found other characters")
        return cls({"authorization": f"Bearer {token}"})


class Credentials(Protocol):
    """The credentials of a user, for one event loop."""

    @property
    def description(self) -> str:
        """The description for messages, for example ``the token of user "ann"``."""

    async def get_identity(self) -> Identity:
        """Return the identity for the next request.

        Raises:
            konverge.errors.ConfigurationError: The credentials are invalid or missing.
            konverge.errors.NotConnectedError: The credentials are not available now.
        """

    def invalidate(self, identity: Identity) -> bool:
        """Record that the server rejected the identity; return True if another may be available for one more try."""

    def clone(self) -> Credentials:
        """Return the same credentials for another event loop."""


class _StaticCredentials:
    """Credentials that never change: one constant identity."""

    def __init__(self, identity: Identity, description: str) -> None:
        self.description = description
        self._identity = identity

    async def get_identity(self) -> Identity:
        """Return the identity, which is constant."""
        return self._identity

    def invalidate(self, identity: Identity) -> bool:
        """Return False: there is no other identity."""
        return False

    def clone(self) -> Credentials:
        """Return this object: it never changes."""
        return self


class AnonymousCredentials(_StaticCredentials):
    """No credentials, or only a client certificate."""

    def __init__(self, description: str = "a request without credentials") -> None:
        super().__init__(Identity(), description)


class BearerToken(_StaticCredentials):
    """A bearer token that never changes."""

    def __init__(self, token: str, description: str = "the token") -> None:
        super().__init__(Identity.from_token(token), description)


class BasicAuth(_StaticCredentials):
    """A user name with a password."""

    def __init__(self, username: str, password: str, description: str = "the password") -> None:
        try:
            encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        except UnicodeEncodeError:
            raise ConfigurationError(f"{description}: expected valid UTF-8 text, found other characters") from None
        super().__init__(Identity({"authorization": f"Basic {encoded}"}), description)


class TokenFile:
    """A bearer token in a file that another process updates; read every minute, and after the server rejects it.

    Args:
        path: The file.
        clock: The source of time.
        token: The token to use while the file cannot be read.
        description: The description for messages.
    """

    def __init__(self, path: Path, clock: Clock, *, token: str = "", description: str = "") -> None:
        self.description = description or f"the token in {path}"
        self._path = path
        self._clock = clock
        self._token = token
        self._identity = Identity.from_token(token)
        self._read_at: float | None = None

    async def get_identity(self) -> Identity:
        """Return the token, read at most a minute ago. If the file cannot be read, return the last valid token.

        Raises:
            konverge.errors.ConfigurationError: There was no valid token in the file yet.
        """
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _REREAD_SECONDS:
            try:
                token = (await asyncio.to_thread(self._path.read_text, "ascii")).strip()
            except (OSError, ValueError) as error:
                if not self._token:
                    raise ConfigurationError(
                        f"{self.description}: cannot read the file: {_describe_read_error(error)}"
                    ) from error
            else:
                # A process that writes the file in place truncates it first.
                if not token and not self._token:
                    raise ConfigurationError(f"{self.description}: expected a token, found an empty file")
                if not _is_token(token):
                    # The rotation failed: the previous token may still be valid.
                    if not self._token:
                        raise ConfigurationError(
                            f"{self.description}: expected a token of printable ASCII characters, found others"
                        )
                    _logger.warning(
                        "%s: expected a token of printable ASCII characters, found others; using the previous token",
                        self.description,
                    )
                elif token and token != self._token:
                    self._token, self._identity = token, Identity.from_token(token)
            self._read_at = now
        return self._identity

    def invalidate(self, identity: Identity) -> bool:
        """Make the next call read the file again: it may contain a newer token."""
        if identity is self._identity:
            self._read_at = None
        return True

    def clone(self) -> Credentials:
        """Return credentials that read the same file separately."""
        return TokenFile(self._path, self._clock, token=self._token, description=self.description)


def is_header_value(text: str) -> bool:
    """Return True if the text is a valid header value: it has no control characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return not any(letter < " " or letter == "\x7f" for letter in text)


def _is_token(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _describe_read_error(error: OSError | ValueError) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "expected ASCII text" if isinstance(error, UnicodeDecodeError) else str(error)
