"""Credentials of the requester for one repository: from its own Secrets, for the host they are meant for."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge.resolution.credential_hosts import HOST_KEY
from konverge.resolution.parameters import invalid
from konverge.resolution.resolver import SecretReader

__all__ = ["Credential", "read_ssh_key", "read_token"]

_KNOWN_HOSTS = "known_hosts"
_PRIVATE_KEY = "ssh-privatekey"


@dataclass(frozen=True, slots=True)
class Credential:
    """What a repository is asked with; its text shows none of it.

    Args:
        header: The value of ``Authorization``; empty for none.
        private_key: Of ssh; empty for none.
        known_hosts: The host keys that are accepted, as OpenSSH writes them.
    """

    header: str = field(default="", repr=False)
    private_key: bytes = field(default=b"", repr=False)
    known_hosts: bytes = field(default=b"", repr=False)

    def __bool__(self) -> bool:
        return bool(self.header or self.private_key)


async def read_token(secrets: SecretReader, name: str, key: str, user: str) -> tuple[Credential, str]:
    """The credential of a token or password, and the host that its Secret is bound to; empty for none.

    Raises:
        ResolutionError: There is no such Secret or key, or it is no token.
    """
    token = (await secrets.value(name, key)).strip()
    # A colon ends the user's name, a control character the header.
    if not token or not token.isprintable() or ":" in user or not user.isprintable():
        told = "expected a token in one line, and a user name without a colon"
        raise invalid("gitToken", told)
    encoded = base64.b64encode(f"{user}:{token}".encode()).decode()
    return Credential(header=f"Basic {encoded}"), _bound(await secrets.data(name))


async def read_ssh_key(secrets: SecretReader, name: str) -> tuple[Credential, str]:
    """The key of a Secret of type ``kubernetes.io/ssh-auth`` with ``known_hosts`` beside it, and its host.

    Raises:
        ResolutionError: There is no such Secret, or it lacks one of the two.
    """
    found = await secrets.data(name)
    private_key, known_hosts = found.get(_PRIVATE_KEY, b""), found.get(_KNOWN_HOSTS, b"")
    if not private_key.strip() or not known_hosts.strip():
        told = f"expected a Secret with {_PRIVATE_KEY} and {_KNOWN_HOSTS}"
        raise invalid("gitSSHSecret", told)
    return Credential(private_key=private_key.rstrip() + b"\n", known_hosts=known_hosts.rstrip() + b"\n"), _bound(found)


def _bound(data: Mapping[str, bytes]) -> str:
    return data.get(HOST_KEY, b"").decode("utf-8", "replace").strip()
