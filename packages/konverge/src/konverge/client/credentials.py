"""Who asks: what is shown to the server so that it knows. Nothing of it is in a representation or in a message.

Here are those that stay as they are and the token in a file; `konverge.client.exec_plugin` and `konverge.client.oidc`
have those that must be fetched.
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

_logger = logging.getLogger(__name__)

_REREAD_SECONDS = 60.0
"""The kubelet renews a projected token when 80 % of its life are over, which leaves two minutes at the very least."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What is shown with one request.

    Args:
        headers: The headers to send.
        certificate: The client certificate (PEM) to connect with instead of the cluster's own; empty for that.
        key: The private key (PEM) of it.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)

    @classmethod
    def from_token(cls, token: str) -> Identity:
        """Whoever bears that token.

        Raises:
            konverge.errors.ConfigurationError: No token has such characters; a header with them could not be sent.
        """
        if not _is_token(token):
            raise ConfigurationError("a token has characters that no token has, or several lines")
        return cls({"authorization": f"Bearer {token}"})


class Credentials(Protocol):
    """What identifies a user to the server. Used in one event loop."""

    @property
    def description(self) -> str:
        """What it is, for messages: ``the token of user "ann"``."""

    async def get_identity(self) -> Identity:
        """What to show with the next request.

        Raises:
            konverge.errors.ConfigurationError: It cannot be had.
            konverge.errors.NotConnectedError: It cannot be had now.
        """

    def invalidate(self, identity: Identity) -> bool:
        """Hear that the server did not accept that; tell whether there may be another by now, worth one more try."""

    def clone(self) -> Credentials:
        """The same for another event loop."""


class _StaticCredentials:
    """What stays as it is."""

    def __init__(self, identity: Identity, description: str) -> None:
        self.description = description
        self._identity = identity

    async def get_identity(self) -> Identity:
        """Always the same."""
        return self._identity

    def invalidate(self, identity: Identity) -> bool:
        """Nothing else to offer."""
        return False

    def clone(self) -> Credentials:
        """Itself: it never changes."""
        return self


class AnonymousCredentials(_StaticCredentials):
    """Nobody in particular, or somebody with a client certificate."""

    def __init__(self, description: str = "a request without credentials") -> None:
        super().__init__(Identity(), description)


class BearerToken(_StaticCredentials):
    """A bearer token that stays as it is."""

    def __init__(self, token: str, description: str = "the token") -> None:
        super().__init__(Identity.from_token(token), description)


class BasicAuth(_StaticCredentials):
    """A user name and a password."""

    def __init__(self, username: str, password: str, description: str = "the password") -> None:
        try:
            encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        except UnicodeEncodeError:
            raise ConfigurationError(f"{description} cannot be used: it is not text") from None
        super().__init__(Identity({"authorization": f"Basic {encoded}"}), description)


class TokenFile:
    """A bearer token that somebody else keeps fresh in a file; read again each minute, and when it is refused.

    Args:
        path: The file.
        clock: Says when a minute is over.
        token: What to use while the file cannot be read.
        description: What it is, for messages.
    """

    def __init__(self, path: Path, clock: Clock, *, token: str = "", description: str = "") -> None:
        self.description = description or f"the token in {path}"
        self._path = path
        self._clock = clock
        self._token = token
        self._identity = Identity.from_token(token)
        self._read_at: float | None = None

    async def get_identity(self) -> Identity:
        """The token, at most a minute old. When the file cannot be read, the last token that could is used.

        Raises:
            konverge.errors.ConfigurationError: The file has never held one.
        """
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _REREAD_SECONDS:
            try:
                read = (await asyncio.to_thread(self._path.read_text, "ascii")).strip()
            except (OSError, ValueError) as error:
                if not self._token:
                    raise ConfigurationError(
                        f"cannot read {self.description}: {_describe_read_error(error)}"
                    ) from error
            else:
                # Whoever writes a file in place empties it first.
                if not read and not self._token:
                    raise ConfigurationError(f"cannot use {self.description}: the file is empty")
                if not _is_token(read):
                    # A rotation that went wrong: the one before may be good for a while yet.
                    if not self._token:
                        raise ConfigurationError(f"cannot use {self.description}: it has characters that no token has")
                    _logger.warning("%s stays as it was: the file holds characters that no token has", self.description)
                elif read and read != self._token:
                    self._token, self._identity = read, Identity.from_token(read)
            self._read_at = now
        return self._identity

    def invalidate(self, identity: Identity) -> bool:
        """The file may hold a newer one."""
        if identity is self._identity:
            self._read_at = None
        return True

    def clone(self) -> Credentials:
        """One that reads the same file by itself."""
        return TokenFile(self._path, self._clock, token=self._token, description=self.description)


def is_header_value(text: str) -> bool:
    """Tell whether a header can carry it: text without control characters."""
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
    return "it is not text" if isinstance(error, UnicodeDecodeError) else str(error)
