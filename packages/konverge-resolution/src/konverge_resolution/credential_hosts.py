"""What a credential is sent as, and to whom it may be shown. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Protocol

from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.resolver import Setting
from konverge_resolution.resolver_settings import as_boolean, as_list

__all__ = ["CREDENTIAL_SETTINGS", "HOST_KEY", "CredentialDestination", "check_host", "check_tls", "encode_basic_auth"]

HOST_KEY = "host"
"""A Secret with this key is for the host it names, and for no other."""

CREDENTIAL_SETTINGS: dict[str, Setting] = {
    "credential-hosts": Setting("The hosts that requesters' credentials may be sent to; empty for all", "list"),
    "allow-plain-http-credentials": Setting("Whether they may be sent without TLS", "boolean", "false"),
}
"""Of every resolver that sends credentials which requesters name."""


class CredentialDestination(Protocol):
    """Where a credential is about to be sent."""

    @property
    def scheme(self) -> str:
        """For example ``https``."""

    @property
    def host(self) -> str:
        """The host, in lower case."""

    @property
    def authority(self) -> str:
        """The host with its port, if one was given."""


def check_host(destination: CredentialDestination, secret: Mapping[str, bytes], settings: Mapping[str, str]) -> None:
    """Refuse to show a requester's credential to whom it is not meant for.

    Whoever may make a request chooses both the address and the name of the Secret. Without this, it could have any
    Secret of its namespace sent to a host of its own (CVE-2026-40161 was that, with the operator's own token).

    Args:
        destination: Who would get it.
        secret: What the Secret has that the credential is from.
        settings: The resolver's, `CREDENTIAL_SETTINGS` among them.

    Raises:
        ResolutionError: ``Denied``.
    """
    names = {destination.host, destination.authority}
    bound = secret.get(HOST_KEY, b"").decode("utf-8", "replace")
    if bound and bound.strip().lower() not in names:
        raise ResolutionError(
            Reason.DENIED, f"the Secret is not for host {destination.authority}: it names another one"
        )
    permitted = as_list(settings.get("credential-hosts", ""))
    if permitted and not names & {each.lower() for each in permitted}:
        message = (
            f"credentials are not sent to host {destination.authority}; setting 'credential-hosts' does not name it"
        )
        raise ResolutionError(Reason.DENIED, message)
    check_tls(destination, settings)


def check_tls(destination: CredentialDestination, settings: Mapping[str, str]) -> None:
    """Refuse to show any credential, the operator's own too, to who is spoken to without TLS.

    Args:
        destination: Who would get it.
        settings: The resolver's, `CREDENTIAL_SETTINGS` among them.

    Raises:
        ResolutionError: ``Denied``.
    """
    if destination.scheme == "http" and not as_boolean(settings.get("allow-plain-http-credentials", "false")):
        message = (
            f"credentials are not sent without TLS; use https for {destination.authority}, or let "
            "them be shown to everybody "
            "on the way with setting 'allow-plain-http-credentials'"
        )
        raise ResolutionError(Reason.DENIED, message)


def encode_basic_auth(user: str, password: str) -> str:
    """The value of ``Authorization`` for a user and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
