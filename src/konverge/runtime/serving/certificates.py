"""A server's certificate, read again when its files change: whoever rotates it need not restart the operator."""

from __future__ import annotations

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

from konverge.clock import Clock
from konverge.errors import ConfigurationError
from konverge.runtime.serving.observed_servers import CertificateMetrics

__all__ = ["CertificateFiles", "ServedCertificate"]

_log = logging.getLogger("konverge.runtime.serving")

# As often as controller-runtime's certwatcher looks.
_PERIOD_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where a server's certificate is.

    Args:
        certificate: The certificate and what it is signed by, PEM (``tls.crt``).
        key: Its private key without a password, PEM (``tls.key``).
    """

    certificate: str | Path
    key: str | Path


class ServedCertificate:
    """A TLS context that follows its files.

    Args:
        files: The files.
        clock: Waits between looks.
        metrics: Counts the reads; None for nobody.

    Raises:
        ConfigurationError: From `open`: the files cannot be read, or do not belong together.
    """

    def __init__(self, files: CertificateFiles, clock: Clock, metrics: CertificateMetrics | None = None) -> None:
        self._files = files
        self._clock = clock
        self._metrics = metrics or CertificateMetrics()
        self._seen: tuple[object, ...] = ()
        self.context = _context()
        """For the server; connections that are open keep the certificate they began with."""

    async def open(self) -> None:
        """Read the files for the first time."""
        await asyncio.to_thread(self._read)

    async def follow(self) -> None:
        """Read the files whenever they have changed, until cancelled; what cannot be read leaves what was there."""
        while True:
            await self._clock.sleep(_PERIOD_SECONDS)
            try:
                await asyncio.to_thread(self._read)
            except ConfigurationError as error:
                _log.warning("the certificate stays as it was: %s", error)

    def _read(self) -> None:
        try:
            seen = tuple(
                (found.st_mtime_ns, found.st_size, found.st_ino)
                for found in (Path(each).stat() for each in (self._files.certificate, self._files.key))
            )
            if seen == self._seen:
                return
            # A pair that does not fit (one file is new already) must not spoil the context that is in use.
            _context().load_cert_chain(self._files.certificate, self._files.key, password="")
            self.context.load_cert_chain(self._files.certificate, self._files.key, password="")
        except (OSError, ssl.SSLError) as error:
            self._metrics.failed()
            raise ConfigurationError(
                f"the certificate {self._files.certificate} with the key {self._files.key} cannot be used: "
                f"{error.strerror or type(error).__name__}"
            ) from error
        self._seen = seen
        self._metrics.was_read()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context
