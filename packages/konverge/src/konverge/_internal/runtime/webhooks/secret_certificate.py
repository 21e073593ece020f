"""The self-signed certificate that replicas share through a Secret.

Each replica reads the Secret, writes its content to the replica's own certificate directory, and renews certificates
that are due. A replica that is second with a renewal gets a conflict and uses the certificate of the first one.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Sequence
from pathlib import Path

from konverge._internal.cancellation import await_shielded
from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.webhooks.certificate_rotation import CertificateBundle, plan_rotation
from konverge._internal.runtime.webhooks.self_signed_certificate import write_pair
from konverge.clock import Clock
from konverge.errors import ConfigurationError, ConflictError, KonvergeError, NotFoundError

__all__ = ["SecretCertificate"]

_SECRET = GroupVersionKind("", "v1", "Secret")
_POLL_SECONDS = 60.0
_ATTEMPTS = 5

_log = logging.getLogger("konverge.webhooks")


class SecretCertificate:
    """Fills a directory with the certificate of a Secret, and renews it there when it is due.

    Args:
        client: The cluster; it needs ``get``, ``create`` and ``update`` of the Secret.
        key: The Secret. It is created if it does not exist.
        folder: The directory; an empty one without other writers.
        hosts: Names and addresses of the server.
        clock: Source of time.
    """

    def __init__(self, client: Client, key: ObjectKey, folder: Path, hosts: Sequence[str], clock: Clock) -> None:
        self._client = client
        self._key = key
        self._folder = folder
        self._hosts = tuple(hosts)
        self._clock = clock
        self._written: CertificateBundle | None = None

    async def refresh(self) -> None:
        """Renew what is due in the Secret, and write its certificate to the directory.

        Raises:
            KonvergeError: The Secret cannot be read or written.
        """
        for _ in range(_ATTEMPTS):
            secret = await self._read_secret()
            kept = None if secret is None else CertificateBundle.from_data(_decode_data(secret))
            planned = plan_rotation(kept, self._hosts, self._clock.now())
            try:
                if secret is None:
                    await self._client.create(self._build_secret(planned))
                elif planned != kept:
                    await self._client.update({**secret, "data": _encode_data(planned)})
            except ConflictError:
                continue  # another replica was first: its certificate is as good
            if planned != self._written:
                # The thread does not end on cancellation, and the owner of the directory then removes it. Without the
                # shield, the thread would write the key a moment later.
                writing = asyncio.to_thread(write_pair, self._folder, planned.server, b"".join(planned.bundle))
                await await_shielded(writing)
                self._written = planned
            return
        raise ConfigurationError(
            f"Secret {self._key}: {_ATTEMPTS} updates conflicted with another writer; expected only replicas of the "
            "webhook server to write it"
        )

    async def watch(self, *, look_seconds: float = _POLL_SECONDS) -> None:
        """Refresh periodically until cancelled; a failure is logged and retried."""
        while True:
            await self._clock.sleep(look_seconds)
            try:
                await self.refresh()
            except (KonvergeError, OSError) as problem:
                _log.error("Secret %s: refreshing the certificate failed, retry follows: %s", self._key, problem)

    async def _read_secret(self) -> Object | None:
        try:
            return await self._client.get(_SECRET, self._key)
        except NotFoundError:
            return None

    def _build_secret(self, kept: CertificateBundle) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": self._key.namespace, "name": self._key.name},
            "type": "kubernetes.io/tls",
            "data": _encode_data(kept),
        }


def _encode_data(kept: CertificateBundle) -> Object:
    return {name: base64.b64encode(value).decode("ascii") for name, value in sorted(kept.to_data().items())}


def _decode_data(secret: Object) -> dict[str, bytes]:
    data = {}
    for name, value in (secret.get("data") or {}).items():
        try:
            data[name] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError):
            continue
    return data
