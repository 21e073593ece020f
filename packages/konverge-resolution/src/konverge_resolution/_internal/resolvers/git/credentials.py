"""Credentials for repositories, from the requester's Secrets. Pure."""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge_resolution._internal.credential_hosts import encode_basic_auth
from konverge_resolution._internal.parameter_checks import build_param_error
from konverge_resolution._internal.user_access import SshAccess

__all__ = ["GitCredential", "build_ssh_credential", "build_token_credential"]

_PEM = re.compile(rb"-----BEGIN (?P<kind>[A-Z ]*)PRIVATE KEY-----\s(?P<body>.*?)-----END ", re.DOTALL)
_OPENSSH = b"openssh-key-v1\0"
_NO_CIPHER = b"\0\0\0\x04none"
_KNOWN_HOSTS = "known_hosts"
_PRIVATE_KEY = "ssh-privatekey"


@dataclass(frozen=True, slots=True)
class GitCredential:
    """Credential for a repository; its text representation shows none of it.

    Args:
        header: The value of ``Authorization``; empty for none.
        private_key: The private key for ssh; empty for none.
        known_hosts: The accepted host keys in OpenSSH's format.
        ssh: The means of the user's own ssh in place of a key; None for none.
    """

    header: str = field(default="", repr=False)
    private_key: bytes = field(default=b"", repr=False)
    known_hosts: bytes = field(default=b"", repr=False)
    ssh: SshAccess | None = None

    def __bool__(self) -> bool:
        return bool(self.header or self.private_key or self.ssh)


def build_token_credential(user: str, token: str) -> GitCredential:
    """Return the credential of a token or password.

    Args:
        user: The user name.
        token: The token or password from the Secret.

    Raises:
        ResolutionError: ``InvalidParams``: the Secret has no valid token.
    """
    token = token.strip()
    # A colon would end the user name, and a control character the header.
    if not token or not token.isprintable() or ":" in user or not user.isprintable():
        raise build_param_error("gitToken", "expected a token in one line, and a user name without a colon")
    return GitCredential(header=encode_basic_auth(user, token))


def build_ssh_credential(secret: Mapping[str, bytes]) -> GitCredential:
    """Return the key of a Secret of type ``kubernetes.io/ssh-auth`` with ``known_hosts``.

    Raises:
        ResolutionError: ``InvalidParams``: one of them is missing, or ssh cannot read the key without a passphrase.
    """
    private_key, known_hosts = secret.get(_PRIVATE_KEY, b""), secret.get(_KNOWN_HOSTS, b"")
    if not private_key.strip() or not known_hosts.strip():
        raise build_param_error("gitSSHSecret", f"expected a Secret with {_PRIVATE_KEY} and {_KNOWN_HOSTS}")
    if (problem := _find_key_error(private_key)) is not None:
        raise build_param_error("gitSSHSecret", f"expected in {_PRIVATE_KEY} {problem}")
    return GitCredential(private_key=private_key.rstrip() + b"\n", known_hosts=known_hosts.rstrip() + b"\n")


def _find_key_error(private_key: bytes) -> str | None:
    """Return the error of a key; ssh itself would report an unreadable key like one that the server rejects."""
    found = _PEM.search(private_key)
    if found is None:
        return "a private key in the form of OpenSSH or PEM, found something else"
    is_locked = b"ENCRYPTED" in found["kind"] or b"Proc-Type: 4,ENCRYPTED" in found["body"]
    if found["kind"] == b"OPENSSH ":
        try:
            data = binascii.a2b_base64(found["body"])
        except binascii.Error:
            return "a private key of OpenSSH, found one that is damaged"
        is_locked = data.startswith(_OPENSSH) and not data.startswith(_OPENSSH + _NO_CIPHER)
    message = "a key without a passphrase, as the resolver has no prompt; found one with a passphrase"
    return message if is_locked else None
