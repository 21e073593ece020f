"""The TLS contexts of new connections to a cluster, renewed after a change of the files or the user's certificate.

An open connection keeps its context. The HTTP library separates connections by context: a new context leads to new
connections, and idle connections with the old one are closed after a while.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path

from konverge._internal.client.config import TlsConfig
from konverge._internal.client.credentials import Identity
from konverge.clock import Clock
from konverge.errors import ConfigurationError

__all__ = ["TlsContexts", "build_ssl_context"]

_REREAD_SECONDS = 60.0

_logger = logging.getLogger("konverge.client")


class TlsContexts:
    """The TLS contexts of new connections, for one event loop.

    Files are read again every minute, and after a failed handshake. While they are invalid (for example if only one of
    two is replaced), the previous contents stay in use.

    Args:
        tls: The certificates of both sides.
        source: The source of the configuration, for messages.
        clock: The source of time.

    Raises:
        konverge.errors.ConfigurationError: A certificate or a key is invalid.
    """

    def __init__(self, tls: TlsConfig, source: str, clock: Clock) -> None:
        self._tls = tls
        self._identity = Identity()
        self._source = source
        self._clock = clock
        self._has_files = any((tls.authority_file, tls.certificate_file, tls.key_file))
        self._context = build_ssl_context(tls, source)
        self._read_at = clock.monotonic()
        self._changing = asyncio.Lock()

    @property
    def current(self) -> TlsConfig:
        """The certificates for new connections."""
        return _with_identity(self._tls, self._identity)

    async def get_context(self, identity: Identity) -> ssl.SSLContext:
        """Return the context for a connection with that identity.

        Raises:
            konverge.errors.ConfigurationError: The certificate of the identity is invalid.
        """
        if self._has_files and self._clock.monotonic() - self._read_at >= _REREAD_SECONDS:
            await self.reload(self._context)
        if not _is_same_certificate(identity, self._identity):
            async with self._changing:
                if not _is_same_certificate(identity, self._identity):
                    await self._replace_context(self._tls, identity)
        return self._context

    async def reload(self, used: ssl.SSLContext) -> bool:
        """Read the files now; return True if new connections use another context than the given one."""
        self._read_at = self._clock.monotonic()
        async with self._changing:
            if self._context is used and self._has_files:
                try:
                    tls = await asyncio.to_thread(self._tls.reload)
                    if tls != self._tls:
                        await self._replace_context(tls, self._identity)
                except OSError as error:
                    self._warn(f"{error.filename}: {error.strerror}")
                except ConfigurationError as error:
                    self._warn(str(error))
            return self._context is not used

    async def _replace_context(self, tls: TlsConfig, identity: Identity) -> None:
        self._context = await asyncio.to_thread(build_ssl_context, _with_identity(tls, identity), self._source)
        self._tls, self._identity = tls, identity

    def _warn(self, reason: str) -> None:
        _logger.warning("%s: cannot reload the certificates; using the previous ones: %s", self._source, reason)


def _with_identity(tls: TlsConfig, identity: Identity) -> TlsConfig:
    return replace(tls, certificate=identity.certificate, key=identity.key) if identity.certificate else tls


def _is_same_certificate(one: Identity, other: Identity) -> bool:
    return one is other or (one.certificate, one.key) == (other.certificate, other.key)


def build_ssl_context(tls: TlsConfig, source: str) -> ssl.SSLContext:
    """Build the TLS context for a configuration.

    Args:
        tls: The certificates of both sides.
        source: The source of the configuration, for messages.

    Raises:
        konverge.errors.ConfigurationError: A certificate or a key is invalid.
    """
    if tls.authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the cluster's own authority, and no other
        try:
            context.load_verify_locations(cadata=tls.authority.decode("ascii"))
        except (ssl.SSLError, ValueError):
            raise ConfigurationError(f"the certificate-authority of {source} is not PEM") from None
    else:
        context = ssl.create_default_context()
    # Python 3.13 and later also check the extensions of a CA (RFC 5280). The CAs of many clusters do not have them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.certificate:
        _load_own_certificate(context, tls, source)
    return context


def _load_own_certificate(context: ssl.SSLContext, tls: TlsConfig, source: str) -> None:
    def refuse_password() -> str:
        raise ConfigurationError(f"the client-key of {source} is encrypted; use a key without a password")

    problem = f"cannot use client-certificate and client-key of {source}"
    try:
        # OpenSSL reads them only from files. Only this user can read the folder, and it is deleted on return.
        with tempfile.TemporaryDirectory(prefix="konverge-") as folder:
            certificate, key = Path(folder) / "certificate", Path(folder) / "key"
            certificate.write_bytes(tls.certificate)
            key.write_bytes(tls.key)
            context.load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as error:
        finding = "they do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else "they are not PEM"
        raise ConfigurationError(f"{problem}: {finding}") from None
    except OSError as error:
        raise ConfigurationError(
            f"{problem}: they must be written to a temporary file for a moment, which failed: "
            f"{error.strerror or error}. Set TMPDIR to a writable folder"
        ) from error
