"""Functions for IP addresses and networks."""

from __future__ import annotations

import ipaddress

from konverge_box._internal.expressions.functions.function import build_group

__all__ = ["NETWORK"]


def cidr_contains(cidr: str, address: str) -> bool:
    """Tell whether the network contains the address: `cidrContains("10.0.0.0/8", "10.1.2.3")` is true."""
    try:
        network = ipaddress.ip_network(cidr.strip(), strict=False)
        return ipaddress.ip_address(address.strip()) in network
    except ValueError:
        raise ValueError(
            f"expected a network such as 10.0.0.0/8 and an address, found {cidr[:50]!r} and {address[:50]!r}"
        ) from None


def cidr_valid(text: str) -> bool:
    """Tell whether it is an IPv4 or IPv6 network: an address and a prefix length."""
    try:
        ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        return False
    return "/" in text


def ip_valid(text: str) -> bool:
    """Tell whether it is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text.strip())
    except ValueError:
        return False
    return True


def ip_is_private(text: str) -> bool:
    """Tell whether the address is not public: private, loopback, link-local or otherwise reserved."""
    try:
        return not ipaddress.ip_address(text.strip()).is_global
    except ValueError:
        raise ValueError(f"expected an address, found {text[:50]!r}") from None


NETWORK = build_group("Network", "", cidr_contains, cidr_valid, ip_valid, ip_is_private)
