"""Checks of the destination of a credential, and its encoding. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Protocol

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolver import Setting
from konverge_resolution._internal.resolver_settings import as_boolean, as_list

__all__ = ["CREDENTIAL_SETTINGS", "HOST_KEY", "CredentialDestination", "check_host", "check_tls", "encode_basic_auth"]

HOST_KEY = "host"
"""Key that binds a Secret to the host that it names."""

CREDENTIAL_SETTINGS: dict[str, Setting] = {
    "credential-hosts": Setting("Hosts that may receive credentials of requesters; empty for all", "list"),
    "allow-plain-http-credentials": Setting("Permit sending credentials without TLS", "boolean", "false"),
}
"""Settings of every resolver that sends credentials which requesters name."""


class CredentialDestination(Protocol):
    """Destination of a request that carries a credential."""

    @property
    def scheme(self) -> str:
        """The URL scheme, for example ``https``."""

    @property
    def host(self) -> str:
        """The host, in lower case."""

    @property
    def authority(self) -> str:
        """The host with its port, if one was given."""


def check_host(destination: CredentialDestination, secret: Mapping[str, bytes], settings: Mapping[str, str]) -> None:
    """Refuse to send a requester's credential to a host that it is not bound to.

    The author of a request chooses both the address and the name of the Secret. Without this check, a request could
    send any Secret of its namespace to a host of its author (CVE-2026-40161 did that with the operator's own token).

    Args:
        destination: The destination of the credential.
        secret: The data of the Secret that has the credential.
        settings: The settings of the resolver, including `CREDENTIAL_SETTINGS`.

    Raises:
        ResolutionError: ``Denied``: the Secret or the settings do not permit this host.
    """
    names = {destination.host, destination.authority}
    bound = secret.get(HOST_KEY, b"").decode("utf-8", "replace")
    if bound and bound.strip().lower() not in names:
        raise ResolutionError(
            Reason.DENIED,
            f"the Secret is bound to another host than {destination.authority}; correct its key 'host' or the address",
        )
    permitted = as_list(settings.get("credential-hosts", ""))
    if permitted and not names & {host.lower() for host in permitted}:
        message = (
            f"credentials are not sent to host {destination.authority}: setting 'credential-hosts' does not list it"
        )
        raise ResolutionError(Reason.DENIED, message)
    check_tls(destination, settings)


def check_tls(destination: CredentialDestination, settings: Mapping[str, str]) -> None:
    """Refuse to send any credential, including the operator's own, to a server without TLS.

    Args:
        destination: The destination of the credential.
        settings: The settings of the resolver, including `CREDENTIAL_SETTINGS`.

    Raises:
        ResolutionError: ``Denied``: the destination has no TLS, and the settings do not permit that.
    """
    if destination.scheme == "http" and not as_boolean(settings.get("allow-plain-http-credentials", "false")):
        message = (
            f"credentials are not sent without TLS; use https for {destination.authority}, or set "
            "'allow-plain-http-credentials', which exposes them to the network"
        )
        raise ResolutionError(Reason.DENIED, message)


def encode_basic_auth(user: str, password: str) -> str:
    """Return the ``Authorization`` header for a user and a password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
