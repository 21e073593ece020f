"""Who asks: what is added to each request so that the server knows. Client certificates are part of TLS instead.

The values are in no representation and in no message.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from konverge.clock import Clock
from konverge.errors import ConfigurationError

__all__ = ["Anonymous", "BasicAuth", "Credentials", "Token", "TokenFile"]

_REREAD_SECONDS = 60.0
"""The kubelet renews a projected token when 80 % of its life are over, which leaves two minutes at the very least."""


class Credentials(Protocol):
    """What identifies a user to the server."""

    @property
    def description(self) -> str:
        """What it is, for messages: ``the token of user "ann"``."""

    async def headers(self) -> Mapping[str, str]:
        """The headers to send with each request.

        Raises:
            konverge.errors.ConfigurationError: They cannot be had.
        """

    def refused(self) -> bool:
        """Hear that the server did not accept them; tell whether there may be others by now, worth one more try."""


class Anonymous:
    """Nobody in particular, or somebody with a client certificate."""

    def __init__(self, description: str = "a request without credentials") -> None:
        self.description = description

    async def headers(self) -> Mapping[str, str]:
        """None."""
        return {}

    def refused(self) -> bool:
        """Nothing else to offer."""
        return False


class Token:
    """A bearer token that stays as it is."""

    def __init__(self, token: str, description: str = "the token") -> None:
        self.description = description
        self._headers = {"authorization": f"Bearer {token}"}

    async def headers(self) -> Mapping[str, str]:
        """The token."""
        return self._headers

    def refused(self) -> bool:
        """Nothing else to offer."""
        return False


class BasicAuth:
    """A user name and a password."""

    def __init__(self, username: str, password: str, description: str = "the password") -> None:
        self.description = description
        encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        self._headers = {"authorization": f"Basic {encoded}"}

    async def headers(self) -> Mapping[str, str]:
        """Both, encoded."""
        return self._headers

    def refused(self) -> bool:
        """Nothing else to offer."""
        return False


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
        self._read_at: float | None = None

    async def headers(self) -> Mapping[str, str]:
        """The token, at most a minute old. When the file cannot be read, the last token that could is used."""
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= _REREAD_SECONDS:
            try:
                read = await asyncio.to_thread(self._path.read_text, "ascii")
            except (OSError, UnicodeDecodeError) as error:
                if not self._token:
                    raise ConfigurationError(f"cannot read {self.description}: {_why(error)}") from error
            else:
                self._token = read.strip()
                if not self._token:
                    raise ConfigurationError(f"cannot use {self.description}: the file is empty")
            self._read_at = now
        return {"authorization": f"Bearer {self._token}"}

    def refused(self) -> bool:
        """The file may hold a newer one."""
        self._read_at = None
        return True


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not text"
