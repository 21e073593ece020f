"""The certificate of our own that replicas share through a Secret.

Each replica looks at the Secret, writes what it holds into its own certificate folder, and does what is due; who comes
second with that finds a conflict and takes what the first one wrote.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
from collections.abc import Sequence
from pathlib import Path

from konverge.cancellation import await_shielded
from konverge.client import Client
from konverge.clock import Clock
from konverge.errors import ConfigurationError, ConflictError, KonvergeError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.runtime.webhooks.certificate_rotation import CertificateBundle, plan_rotation
from konverge.runtime.webhooks.self_signed_certificate import write_pair

__all__ = ["SecretCertificate"]

_SECRET = GroupVersionKind("", "v1", "Secret")
_POLL_SECONDS = 60.0
_ATTEMPTS = 5

_log = logging.getLogger("konverge.webhooks")


class SecretCertificate:
    """Fills a folder with the certificate that a Secret holds, and renews it there when it is due.

    Args:
        client: The cluster; it needs ``get``, ``create`` and ``update`` of the Secret.
        key: The Secret. It is made when there is none.
        folder: Where to; an empty one that nobody else writes to.
        hosts: Names and addresses under which the server is met.
        clock: The time.
    """

    def __init__(self, client: Client, key: ObjectKey, folder: Path, hosts: Sequence[str], clock: Clock) -> None:
        self._client = client
        self._key = key
        self._folder = folder
        self._hosts = tuple(hosts)
        self._clock = clock
        self._written: CertificateBundle | None = None

    async def refresh(self) -> None:
        """Look once: do what is due, and have the folder hold what the Secret holds.

        Raises:
            KonvergeError: The Secret cannot be read or written.
        """
        for _ in range(_ATTEMPTS):
            secret = await self._read_secret()
            kept = None if secret is None else CertificateBundle.from_data(_decode_data(secret))
            wanted = plan_rotation(kept, self._hosts, self._clock.now())
            try:
                if secret is None:
                    await self._client.create(self._build_secret(wanted))
                elif wanted != kept:
                    await self._client.update({**secret, "data": _encode_data(wanted)})
            except ConflictError:
                continue  # another replica was first: what it wrote is as good
            if wanted != self._written:
                # The thread does not end when it is cancelled, and whoever made the folder removes it then: without the
                # key that would come a moment later.
                writing = asyncio.to_thread(write_pair, self._folder, wanted.server, b"".join(wanted.bundle))
                await await_shielded(writing)
                self._written = wanted
            return
        raise ConfigurationError(
            f"Secret {self._key}: somebody else writes it all the time; expected webhooks' replicas"
        )

    async def watch(self, *, look_seconds: float = _POLL_SECONDS) -> None:
        """Look again and again, until cancelled; what fails is logged and tried again."""
        while True:
            await self._clock.sleep(look_seconds)
            try:
                await self.refresh()
            except (KonvergeError, OSError) as problem:
                _log.error("Secret %s: the certificate cannot be looked after now: %s", self._key, problem)

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
    found = {}
    for name, value in (secret.get("data") or {}).items():
        try:
            found[name] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError):
            continue
    return found
