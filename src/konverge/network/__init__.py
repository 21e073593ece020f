"""Connections to places that somebody else names: which addresses may be reached, and how that is made sure of.

A name is resolved here, the address is judged, and the connection goes to exactly that address. By themselves only
addresses of the public internet may be reached; whoever runs a program says which other networks may.
"""

from konverge.network.addresses import Networks
from konverge.network.connecting import CheckedSockets, Lookup, Names, connected, connector, permitted
from konverge.network.refused import RefusedAddressError

__all__ = [
    "CheckedSockets",
    "Lookup",
    "Names",
    "Networks",
    "RefusedAddressError",
    "connected",
    "connector",
    "permitted",
]
