"""Addresses for programs that connect by themselves: resolved and judged here, for one request."""

from __future__ import annotations

from konverge_resolution.errors import ResolutionError
from konverge_resolution.network import AllowedNetworks, Lookup, RefusedAddressError, resolve_permitted
from konverge_resolution.reasons import Reason

__all__ = ["GuardedAddressResolver"]


class GuardedAddressResolver:
    """Gives only addresses that may be connected to; implements `konverge_resolution.AddressResolver`.

    Args:
        lookup: What resolves names.
        networks: Which networks may be reached besides the public internet: those of the policies of one request.
    """

    def __init__(self, lookup: Lookup, networks: AllowedNetworks) -> None:
        self._lookup = lookup
        self._networks = networks

    async def resolve_permitted(self, host: str, port: int) -> tuple[str, ...]:
        """The addresses of a host that may be connected to, at least one.

        Raises:
            ResolutionError: ``Denied``: none of them may be. The message does not say what the name resolves to: that
                would be an answer to whoever wants to know the names of a network; ``Unreachable``: it has none.
        """
        try:
            return tuple(await resolve_permitted(host, port, self._lookup, self._networks))
        except RefusedAddressError as error:
            message = f"host {host} may not be connected to: its network is {error.kind}"
            if self._networks.opened_by:
                message += f"; {self._networks.opened_by}"
            raise ResolutionError(Reason.DENIED, message) from None
        except OSError:
            raise ResolutionError(Reason.UNREACHABLE, f"host {host} cannot be resolved") from None
