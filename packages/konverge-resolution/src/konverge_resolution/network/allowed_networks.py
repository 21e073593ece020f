"""Which addresses may be reached: by themselves only those of the public internet.

An address is judged where a connection is about to be made to it, after its name was resolved. What a name says, and
what it resolved to a moment ago, says nothing.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Iterable
from typing import TypeAlias

__all__ = ["AllowedNetworks", "is_address", "parse_network"]

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_SPECIAL = {
    ipaddress.ip_network(network): kind
    for network, kind in {
        "0.0.0.0/8": "unspecified",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a carrier",
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's own service",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "reserved",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
        "::/128": "unspecified",
        "::1/128": "loopback",
        "64:ff9b:1::/48": "a private translation",
        "2001::/23": "reserved",
        "2001:db8::/32": "for documentation",
        "2002::/16": "a tunnel (6to4)",
        "3fff::/20": "for documentation",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "ff00::/8": "multicast",
    }.items()
}

_GLOBAL = ipaddress.IPv6Network("2000::/3")
"""All of IPv6 that is public; whatever else comes up later is not, until somebody says so."""

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""NAT64: the last four bytes are the address that is reached in the end."""


class AllowedNetworks:
    """The networks that may be reached besides the public internet.

    Args:
        allowed: Such as ``10.0.0.0/8`` or ``fd00::/8``.
        opened_by: What a refusal says about how one more is allowed, as the end of a sentence; empty for nothing.

    Raises:
        ValueError: One of them is no network.
    """

    __slots__ = ("_allowed", "names", "opened_by")

    def __init__(self, allowed: Iterable[str] = (), *, opened_by: str = "") -> None:
        self.names = tuple(sorted(allowed))
        self.opened_by = opened_by
        self._allowed = tuple(parse_network(name) for name in self.names)

    def find_refusal(self, address: str) -> str:
        """What speaks against an address, such as ``link-local``; empty for nothing.

        Of an IPv6 address that stands for one of IPv4 (mapped, NAT64), the latter counts.
        """
        try:
            found: Address = ipaddress.ip_address(address)
        except ValueError:
            return "no address"
        candidates = [found]
        if isinstance(found, ipaddress.IPv6Address) and (inner := _unwrap_address(found)) is not None:
            candidates.append(inner)
        if any(each in network for each in candidates for network in self._allowed):
            return ""
        judged = candidates[-1]
        kind = next((kind for network, kind in _SPECIAL.items() if judged in network), "")
        if not kind and isinstance(judged, ipaddress.IPv6Address) and judged not in _GLOBAL:
            return "not public"
        return kind


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Read a network such as ``10.0.0.0/8``.

    Args:
        text: The network; an address alone is one of one address.

    Raises:
        ValueError: It is none. The message proposes the one that an address with a length is in.
    """
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        message = f"expected a network such as 10.0.0.0/8, found {text[:80]!r}"
    with contextlib.suppress(ValueError):
        message += f"; did you mean {ipaddress.ip_network(text, strict=False)}?"
    raise ValueError(message)


def is_address(host: str) -> bool:
    """Tell whether a host is an address and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _unwrap_address(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(address.packed[-4:]) if address in _TRANSLATED else None
