"""A connection that is not made, because of where it would go."""

from __future__ import annotations

__all__ = ["RefusedAddressError"]


class RefusedAddressError(Exception):
    """The address of a host may not be reached.

    No `OSError`: what tries addresses one after the other must not take it for one that does not answer.

    Args:
        host: As it was asked for.
        address: What it resolves to.
        kind: What the address's network is, for example ``link-local``.
    """

    def __init__(self, host: str, address: str, kind: str) -> None:
        named = address if host == address else f"{host} ({address})"
        super().__init__(f"{named} may not be reached: its network is {kind}")
        self.kind = kind
