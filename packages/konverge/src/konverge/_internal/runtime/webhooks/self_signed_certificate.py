"""The self-signed certificate of a webhook server, in a directory.

It imports ``cryptography`` (the extra ``webhooks``); other modules import it on first use. For development, the
authority lives as long as the process (`SelfSignedCertificate`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from konverge._internal.certificates import SERVER_LIFETIME, CertificateAuthority, KeyPair, compute_renewal_delay
from konverge._internal.runtime.certificate_watcher import AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE
from konverge.clock import Clock

__all__ = ["SelfSignedCertificate", "write_pair"]

_RETRY_SECONDS = 60.0

_log = logging.getLogger("konverge.webhooks")


class SelfSignedCertificate:
    """Fills a directory with a certificate for development, and renews it before it expires; the authority stays.

    Args:
        folder: The directory; an empty one without other readers.
        hosts: Names and addresses of the server.
        clock: Source of time.
        lifetime: Period of validity of a certificate.
    """

    def __init__(
        self, folder: Path, hosts: Sequence[str], clock: Clock, *, lifetime: timedelta = SERVER_LIFETIME
    ) -> None:
        self._folder = folder
        self._hosts = tuple(hosts)
        self._clock = clock
        self._lifetime = lifetime
        self._authority = CertificateAuthority("konverge development authority", clock.now())
        self._pair = self._issue_pair()

    async def renew(self) -> None:
        """Write a new certificate after two thirds of the present one's lifetime, until cancelled."""
        while True:
            await self._clock.sleep(compute_renewal_delay(self._pair, self._clock.now()).total_seconds())
            try:
                self._pair = self._issue_pair()
            except OSError as problem:
                _log.error("%s: renewing the certificate failed, retry follows: %s", self._folder, problem.strerror)
                await self._clock.sleep(_RETRY_SECONDS)

    def _issue_pair(self) -> KeyPair:
        pair = self._authority.issue(self._hosts, self._clock.now(), self._lifetime)
        write_pair(self._folder, pair, self._authority.pair.certificate)
        return pair


def write_pair(folder: Path, pair: KeyPair, authorities: bytes) -> None:
    """Replace the files of a certificate directory, each atomically; a reader that sees a mixture retries."""
    for name, content in ((AUTHORITY_FILE, authorities), (KEY_FILE, pair.key), (CERTIFICATE_FILE, pair.certificate)):
        fresh = folder / f".{name}"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(fresh, folder / name)
