"""How to talk TLS to a cluster: the contexts of new connections, renewed when their files or the user's change.

A connection that is open keeps what it was opened with. The HTTP library keeps connections of different contexts
apart, so a new one leads to new connections, and those of the old one are closed when they have been idle for a while.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path

from konverge.client.config import TlsConfig
from konverge.client.credentials import Identity
from konverge.clock import Clock
from konverge.errors import ConfigurationError

__all__ = ["TlsContexts", "build_ssl_context"]

_REREAD_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class TlsContexts:
    """The TLS of new connections. Of one event loop.

    Files are read again each minute, and when a handshake fails. While they cannot be used (one of two has been
    replaced so far, say), what was read before serves on.

    Args:
        tls: What both sides prove themselves by.
        source: Where that was found, for messages.
        clock: Says when a minute is over.

    Raises:
        konverge.errors.ConfigurationError: A certificate or a key is not what it should be.
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
        """What new connections go by."""
        return _with_identity(self._tls, self._identity)

    async def get_context(self, identity: Identity) -> ssl.SSLContext:
        """The context for a connection as that user.

        Raises:
            konverge.errors.ConfigurationError: The user's own certificate cannot be used.
        """
        if self._has_files and self._clock.monotonic() - self._read_at >= _REREAD_SECONDS:
            await self.reload(self._context)
        if not _is_same_certificate(identity, self._identity):
            async with self._changing:
                if not _is_same_certificate(identity, self._identity):
                    await self._replace_context(self._tls, identity)
        return self._context

    async def reload(self, used: ssl.SSLContext) -> bool:
        """Read the files now; tell whether a new connection goes by something else than that context."""
        self._read_at = self._clock.monotonic()
        async with self._changing:
            if self._context is used and self._has_files:
                try:
                    found = await asyncio.to_thread(self._tls.reload)
                    if found != self._tls:
                        await self._replace_context(found, self._identity)
                except OSError as error:
                    self._warn(f"{error.filename}: {error.strerror}")
                except ConfigurationError as error:
                    self._warn(str(error))
            return self._context is not used

    async def _replace_context(self, tls: TlsConfig, shown: Identity) -> None:
        self._context = await asyncio.to_thread(build_ssl_context, _with_identity(tls, shown), self._source)
        self._tls, self._identity = tls, shown

    def _warn(self, why: str) -> None:
        _logger.warning(
            "the certificates of %s stay as they were, since they cannot be read again: %s", self._source, why
        )


def _with_identity(tls: TlsConfig, shown: Identity) -> TlsConfig:
    return replace(tls, certificate=shown.certificate, key=shown.key) if shown.certificate else tls


def _is_same_certificate(one: Identity, other: Identity) -> bool:
    return one is other or (one.certificate, one.key) == (other.certificate, other.key)


def build_ssl_context(tls: TlsConfig, source: str) -> ssl.SSLContext:
    """How to talk TLS by that.

    Args:
        tls: What both sides prove themselves by.
        source: Where that was found, for messages.

    Raises:
        konverge.errors.ConfigurationError: A certificate or a key is not what it should be.
    """
    if tls.authority:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the cluster's own authority, and no other
        try:
            context.load_verify_locations(cadata=tls.authority.decode("ascii"))
        except (ssl.SSLError, ValueError):
            raise ConfigurationError(f"the certificate-authority of {source} is not PEM") from None
    else:
        context = ssl.create_default_context()
    # Python 3.13 and later also check what RFC 5280 asks of a CA's extensions. Many clusters' own CAs lack them.
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

    what = f"cannot use client-certificate and client-key of {source}"
    try:
        # OpenSSL reads them from files only. The folder is readable by this user alone, and gone when this returns.
        with tempfile.TemporaryDirectory(prefix="konverge-") as folder:
            certificate, key = Path(folder) / "certificate", Path(folder) / "key"
            certificate.write_bytes(tls.certificate)
            key.write_bytes(tls.key)
            context.load_cert_chain(certificate, key, refuse_password)
    except ssl.SSLError as error:
        found = "they do not belong together" if error.reason == "KEY_VALUES_MISMATCH" else "they are not PEM"
        raise ConfigurationError(f"{what}: {found}") from None
    except OSError as error:
        raise ConfigurationError(
            f"{what}: they have to be in a temporary file for a moment, and there can be none: "
            f"{error.strerror or error}. Let TMPDIR name a folder that can be written"
        ) from error
