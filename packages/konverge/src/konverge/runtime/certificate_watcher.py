"""A server's certificate in a folder, read again when it changes.

The folder is what cert-manager, a mounted Secret or `konverge.runtime.webhooks.self_signed_certificate` fills:
``tls.crt``,
``tls.key``, and ``ca.crt`` for those who are to trust it. The files are compared by what ``stat`` says of them, since a
mounted Secret is swapped as a link, of which file notifications tell the wrong thing. Only a whole and matching pair is
taken over; connections that stand keep the pair with which they began.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
from pathlib import Path
from typing import Any

from konverge.clock import Clock
from konverge.errors import ConfigurationError

__all__ = ["AUTHORITY_FILE", "CERTIFICATE_FILE", "KEY_FILE", "CertificateWatcher"]

CERTIFICATE_FILE, KEY_FILE, AUTHORITY_FILE = "tls.crt", "tls.key", "ca.crt"

_POLL_SECONDS = 10.0
_MAX_BUNDLE_BYTES = 1024 * 1024

_log = logging.getLogger("konverge.webhooks")

# Of each file: where it is, when it was written, how long it is. None for one that is not there.
_Signature = tuple[tuple[int, int, int, int] | None, ...]


class CertificateWatcher:
    """The pair of a folder, as a TLS context that always has the newest one.

    Args:
        folder: Where the files are.

    Attributes:
        folder: The folder.
        context: For the server. Handshakes that begin now use the pair that was read last.
        reads: How often a pair was taken over.
        read_errors: How often what was there could not be.
        last_error: Why what is there now cannot be taken over; empty when it is in use.

    Raises:
        ConfigurationError: There is no usable pair to begin with.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reads = 0
        self.read_errors = 0
        self.last_error = ""
        self._seen: _Signature | None = None
        self._newest: ssl.SSLContext | None = None
        self.context = _build_server_context()
        # The name is not looked at: this is the moment of a handshake in which its context may be replaced.
        self.context.sni_callback = self._select_newest_context
        if not self.reload_if_changed():
            raise ConfigurationError(
                f"the certificate folder {folder} cannot be used: {self.last_error}. Expected {CERTIFICATE_FILE} and "
                f"{KEY_FILE}, in PEM, that belong together"
            )

    def reload_if_changed(self) -> bool:
        """Read the pair if it has changed since the last look; blocks for as long as the files do.

        Returns:
            Whether a new pair is in use.
        """
        signature = self._compute_signature()
        if signature == self._seen:
            return False
        try:
            found = _build_server_context()
            found.load_cert_chain(self.folder / CERTIFICATE_FILE, self.folder / KEY_FILE, password=_refuse_password)
        except (OSError, ValueError) as problem:  # ssl.SSLError is an OSError
            self.read_errors += 1
            # Files that are still being written differ at each look: each is looked at again, the first is told.
            if not self.last_error and self._newest is not None:
                _log.error("%s: the new certificate is not usable, the one before stays: %s", self.folder, problem)
            self.last_error = _describe_error(problem)
            self._seen = signature
            return False
        if self._compute_signature() != signature:
            return False  # replaced while we read: the next look sees it whole
        self._seen = signature
        self._newest = found
        self.last_error = ""
        self.reads += 1
        if self.reads > 1:
            _log.info("%s: the new certificate is in use", self.folder)
        return True

    async def watch(self, clock: Clock, *, poll_seconds: float = _POLL_SECONDS) -> None:
        """Look again and again, until cancelled.

        Args:
            clock: The time.
            poll_seconds: How long between two looks.
        """
        while True:
            await clock.sleep(poll_seconds)
            await asyncio.to_thread(self.reload_if_changed)

    def read_authorities(self) -> bytes:
        """Whom to trust to meet this server, in PEM; empty when the folder has no ``ca.crt``.

        Raises:
            ConfigurationError: The file is there and cannot be read.
        """
        path = self.folder / AUTHORITY_FILE
        try:
            with path.open("rb") as file:
                found = file.read(_MAX_BUNDLE_BYTES + 1)
        except FileNotFoundError:
            return b""
        except OSError as problem:
            raise ConfigurationError(f"{path} cannot be read: {problem}") from None
        if len(found) > _MAX_BUNDLE_BYTES:
            raise ConfigurationError(f"{path} is larger than {_MAX_BUNDLE_BYTES} bytes: it is no bundle")
        return found

    def _select_newest_context(self, handshake: Any, name: str | None, context: ssl.SSLContext) -> None:
        if self._newest is not None:
            handshake.context = self._newest

    def _compute_signature(self) -> _Signature:
        return tuple(_stat(self.folder / name) for name in (CERTIFICATE_FILE, KEY_FILE))


def _build_server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # HTTP/1.1 alone: the API server asks for it itself, so that its connections spread over the replicas.
    context.set_alpn_protocols(["http/1.1"])
    return context


def _stat(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _refuse_password() -> str:
    """Instead of OpenSSL's question on the terminal, which would hang the process."""
    raise ValueError(f"{KEY_FILE} is encrypted; expected a key without a password")


def _describe_error(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLError):
        return problem.reason.replace("_", " ").lower() if problem.reason else "it is no certificate with its key"
    if isinstance(problem, OSError):
        return problem.strerror or type(problem).__name__
    return str(problem)
