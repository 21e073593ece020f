"""Proxies of the variables ``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY``, for commands of a user. Pure.

A process in a cluster ignores these variables: its proxy is a setting (`network.proxy`).
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from konverge_resolution._internal.network.proxy import Proxy

__all__ = ["EnvironmentProxies"]

_EVERY_HOST = "*"


@dataclass(frozen=True, slots=True)
class EnvironmentProxies:
    """Proxies by scheme, and the hosts without a proxy.

    Args:
        proxies: The proxy for ``http`` and for ``https``; a scheme without one connects directly.
        direct: Entries of ``NO_PROXY``.
    """

    proxies: Mapping[str, Proxy]
    direct: tuple[str, ...] = ()

    @classmethod
    def parse(cls, environment: Mapping[str, str]) -> Self:
        """Parse the variables; lower case takes precedence, as for curl.

        Raises:
            ValueError: A variable is not the URL of a proxy. The message has its name and not its value.
        """
        proxies = {}
        for scheme in ("https", "http"):
            names = [f"{scheme}_proxy", f"{scheme.upper()}_PROXY"]
            if (name := next((name for name in names if environment.get(name, "").strip()), "")) == "":
                continue
            text = environment[name].strip()
            try:
                proxies[scheme] = Proxy.parse(text if "://" in text else f"http://{text}")
            except ValueError as error:
                raise ValueError(f"variable {name}: {error}") from None
        listed = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
        return cls(proxies, tuple(entry for entry in (part.strip().lower() for part in listed.split(",")) if entry))

    def list_addresses(self) -> set[tuple[str, int]]:
        """Return the hosts and ports of the proxies."""
        return {proxy.address for proxy in self.proxies.values()}

    def select(self, scheme: str, host: str, port: int) -> Proxy | None:
        """Return the proxy for a connection; None for a direct one.

        Args:
            scheme: ``http`` or ``https``.
            host: The host without brackets.
            port: The port.
        """
        name = host.lower().rstrip(".")
        is_direct = any(_matches(entry, name, port) for entry in self.direct)
        return None if is_direct else self.proxies.get(scheme)


def _matches(entry: str, host: str, port: int) -> bool:
    """Tell whether an entry of ``NO_PROXY`` names a host: a name with its subdomains, an address, a network, or ``*``.

    An entry with a leading dot or ``*.`` is only for subdomains. A port limits an entry to it.
    """
    if entry == _EVERY_HOST:
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry.strip("[]"), strict=False)
    name, _, limit = entry.rpartition(":")
    if limit.isdecimal() and name:
        if int(limit[:6]) != port:
            return False
        entry = name.strip("[]")
    name = entry.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")
