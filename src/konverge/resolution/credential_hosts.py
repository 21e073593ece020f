"""To whom a requester's credential may be shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.resolver import Setting

__all__ = ["CREDENTIAL_SETTINGS", "HOST_KEY", "CredentialPlace", "check_host"]

HOST_KEY = "host"
"""A Secret with this key is for the host it names, and for no other."""

CREDENTIAL_SETTINGS: dict[str, Setting] = {
    "credential-hosts": Setting("The hosts that requesters' credentials may be sent to; empty for all", "list"),
    "allow-plain-http-credentials": Setting("Whether they may be sent without TLS", "boolean", "false"),
}
"""Of every resolver that sends credentials which requesters name."""


class CredentialPlace(Protocol):
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


def check_host(place: CredentialPlace, bound: str, hosts: Iterable[str], *, allows_plain_http: bool) -> None:
    """Refuse to show a credential to whom it is not meant for.

    Whoever may make a request chooses both the address and the name of the Secret. Without this, it could have any
    Secret of its namespace sent to a host of its own (CVE-2026-40161 was that, with the operator's own token).

    Args:
        place: Who would get it.
        bound: The host that the Secret itself names; empty for none.
        hosts: The hosts that the operator permits; none permit all.
        allows_plain_http: Whether it may be sent without TLS.

    Raises:
        ResolutionError: ``Denied``.
    """
    names = {place.host, place.authority}
    permitted = tuple(hosts)
    if bound and bound.strip().lower() not in names:
        raise ResolutionError(Reason.DENIED, f"the Secret is not for host {place.authority}: it names another one")
    if permitted and not names & {each.lower() for each in permitted}:
        told = f"credentials are not sent to host {place.authority}; the resolver's credential-hosts does not name it"
        raise ResolutionError(Reason.DENIED, told)
    if place.scheme == "http" and not allows_plain_http:
        told = f"credentials are not sent without TLS; use https for {place.authority}"
        raise ResolutionError(Reason.DENIED, told)
