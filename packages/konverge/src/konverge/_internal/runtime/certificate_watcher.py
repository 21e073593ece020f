"""The certificate of a server in a directory, read again when it changes.

cert-manager, a mounted Secret or `runtime.webhooks.self_signed_certificate` writes the directory: ``tls.crt``,
``tls.key``, and ``ca.crt`` for clients. Changes are detected by ``stat``, since a mounted Secret is replaced through a
symbolic link, which file notifications report wrongly. Only a complete and matching pair is loaded; open connections
keep the pair with which they began.
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

# For each file: device, inode, modification time and size; None for a missing file.
_Signature = tuple[tuple[int, int, int, int] | None, ...]


class CertificateWatcher:
    """The certificate and key of a directory, as a TLS context that always uses the newest pair.

    Args:
        folder: The directory with the files.

    Attributes:
        folder: The directory.
        context: TLS context for the server. New handshakes use the pair that was loaded last.
        reads: Number of pairs that were loaded.
        read_errors: Number of pairs that could not be loaded.
        last_error: The reason why the present files cannot be loaded; empty while they are in use.

    Raises:
        ConfigurationError: The directory contains no usable pair at the start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reads = 0
        self.read_errors = 0
        self.last_error = ""
        self._seen: _Signature | None = None
        self._newest: ssl.SSLContext | None = None
        self.context = _build_server_context()
        # The server name is ignored: the callback is the point in a handshake at which its context can be replaced.
        self.context.sni_callback = self._select_newest_context
        if not self.reload_if_changed():
            raise ConfigurationError(
                f"{folder}: the certificate cannot be loaded: {self.last_error}; expected {CERTIFICATE_FILE} and "
                f"{KEY_FILE} in PEM, a matching pair"
            )

    def reload_if_changed(self) -> bool:
        """Load the pair if it has changed since the last check; this blocks while it reads the files.

        Returns:
            Whether a new pair is in use.
        """
        signature = self._compute_signature()
        if signature == self._seen:
            return False
        try:
            context = _build_server_context()
            context.load_cert_chain(self.folder / CERTIFICATE_FILE, self.folder / KEY_FILE, password=_refuse_password)
        except (OSError, ValueError) as problem:  # ssl.SSLError is an OSError
            self.read_errors += 1
            # Files that are still being written differ at each check. Each state is tried; only the first failure is
            # logged.
            if not self.last_error and self._newest is not None:
                _log.error("%s: the new certificate cannot be loaded, the previous one stays: %s", self.folder, problem)
            self.last_error = _describe_error(problem)
            self._seen = signature
            return False
        if self._compute_signature() != signature:
            return False  # replaced during the read: the next check loads the complete pair
        self._seen = signature
        self._newest = context
        self.last_error = ""
        self.reads += 1
        if self.reads > 1:
            _log.info("%s: the new certificate is in use", self.folder)
        return True

    async def watch(self, clock: Clock, *, poll_seconds: float = _POLL_SECONDS) -> None:
        """Check for changes periodically until cancelled.

        Args:
            clock: Source of time.
            poll_seconds: Interval of the checks.
        """
        while True:
            await clock.sleep(poll_seconds)
            await asyncio.to_thread(self.reload_if_changed)

    def read_authorities(self) -> bytes:
        """Return the CA certificates that clients need to trust this server, in PEM; empty without ``ca.crt``.

        Raises:
            ConfigurationError: The file exists and cannot be read.
        """
        path = self.folder / AUTHORITY_FILE
        try:
            with path.open("rb") as file:
                bundle = file.read(_MAX_BUNDLE_BYTES + 1)
        except FileNotFoundError:
            return b""
        except OSError as problem:
            raise ConfigurationError(f"{path}: reading the CA certificates failed: {problem}") from None
        if len(bundle) > _MAX_BUNDLE_BYTES:
            raise ConfigurationError(f"{path}: expected a CA bundle of at most {_MAX_BUNDLE_BYTES} bytes, found more")
        return bundle

    def _select_newest_context(self, handshake: Any, name: str | None, context: ssl.SSLContext) -> None:
        if self._newest is not None:
            handshake.context = self._newest

    def _compute_signature(self) -> _Signature:
        return tuple(_stat(self.folder / name) for name in (CERTIFICATE_FILE, KEY_FILE))


def _build_server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Only HTTP/1.1: the API server requests it too, so that its connections spread over the replicas.
    context.set_alpn_protocols(["http/1.1"])
    return context


def _stat(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size


def _refuse_password() -> str:
    """Raise an error: OpenSSL would otherwise prompt on the terminal, which hangs the process."""
    raise ValueError(f"{KEY_FILE}: expected a key without a password, found an encrypted key")


def _describe_error(problem: Exception) -> str:
    if isinstance(problem, ssl.SSLError):
        return problem.reason.replace("_", " ").lower() if problem.reason else "expected a certificate with its key"
    if isinstance(problem, OSError):
        return problem.strerror or type(problem).__name__
    return str(problem)
