"""Checked addresses for programs that open their own connections, such as git."""

from __future__ import annotations

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.network import AllowedNetworks, Lookup, RefusedAddressError, resolve_permitted
from konverge_resolution._internal.reasons import Reason

__all__ = ["GuardedAddressResolver"]


class GuardedAddressResolver:
    """Address resolver that returns only permitted addresses; implements `konverge_resolution.AddressResolver`.

    Args:
        lookup: Resolves host names.
        networks: Networks that the policies of one request permit besides the public internet.
    """

    def __init__(self, lookup: Lookup, networks: AllowedNetworks) -> None:
        self._lookup = lookup
        self._networks = networks

    async def resolve_permitted(self, host: str, port: int) -> tuple[str, ...]:
        """Return the addresses of a host that connections are permitted to; at least one.

        Raises:
            ResolutionError: ``Denied``: no address is permitted. The message does not contain the addresses, so that a
                user cannot explore the names of an internal network; ``Unreachable``: the host has no address.
        """
        try:
            return tuple(await resolve_permitted(host, port, self._lookup, self._networks))
        except RefusedAddressError as error:
            message = f"host {host}: connections are not permitted: its network is {error.kind}"
            if self._networks.opened_by:
                message += f"; {self._networks.opened_by}"
            raise ResolutionError(Reason.DENIED, message) from None
        except OSError:
            raise ResolutionError(Reason.UNREACHABLE, f"host {host}: no address found") from None
