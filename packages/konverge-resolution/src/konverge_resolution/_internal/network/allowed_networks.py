"""Permitted networks: by default only the public internet.

An address is checked just before a connection to it opens, after its name was resolved. The name and earlier results of
its resolution are not evidence.
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
"""All public IPv6 addresses; future allocations outside it are not permitted until they are added here."""

_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""Prefix of NAT64: the last four bytes are the IPv4 address that is reached."""


class AllowedNetworks:
    """Permitted networks besides the public internet.

    Args:
        allowed: Networks such as ``10.0.0.0/8`` or ``fd00::/8``.
        opened_by: Hint on how to permit another network, as the end of an error message; empty for none.
        proxies: Hosts and ports of the proxies of the user's environment, which may be in any network.

    Raises:
        ValueError: One of them is not a network.
    """

    __slots__ = ("_allowed", "names", "opened_by", "proxies")

    def __init__(
        self, allowed: Iterable[str] = (), *, opened_by: str = "", proxies: Iterable[tuple[str, int]] = ()
    ) -> None:
        self.proxies: frozenset[tuple[str, int]] = frozenset(proxies)
        self.names: tuple[str, ...] = tuple(sorted(allowed))
        self.opened_by: str = opened_by
        self._allowed = tuple(parse_network(name) for name in self.names)

    def find_refusal(self, address: str) -> str:
        """Return the kind of network that forbids an address, such as ``link-local``; empty for a permitted address.

        An IPv6 address that stands for an IPv4 address (mapped, NAT64) is checked as the latter.
        """
        try:
            parsed: Address = ipaddress.ip_address(address)
        except ValueError:
            return "no address"
        candidates = [parsed]
        if isinstance(parsed, ipaddress.IPv6Address) and (inner := _unwrap_address(parsed)) is not None:
            candidates.append(inner)
        if any(candidate in network for candidate in candidates for network in self._allowed):
            return ""
        actual = candidates[-1]
        kind = next((kind for network, kind in _SPECIAL.items() if actual in network), "")
        if not kind and isinstance(actual, ipaddress.IPv6Address) and actual not in _GLOBAL:
            return "not public"
        return kind


def parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    """Parse a network such as ``10.0.0.0/8``.

    Args:
        text: The network; a single address is a network of one address.

    Raises:
        ValueError: The text is not a network. The message suggests the network of an address with a prefix length.
    """
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        message = f"expected a network such as 10.0.0.0/8, found {text[:80]!r}"
    with contextlib.suppress(ValueError):
        message += f"; did you mean {ipaddress.ip_network(text, strict=False)}?"
    raise ValueError(message)


def is_address(host: str) -> bool:
    """Tell whether a host is an address and not a name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _unwrap_address(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return ipaddress.IPv4Address(address.packed[-4:]) if address in _TRANSLATED else None
