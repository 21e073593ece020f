"""Which proxy the environment names for a server (``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from konverge.client.server_url import find_url_error
from konverge.errors import ConfigurationError

__all__ = ["find_proxy", "find_usable_proxy"]


def find_usable_proxy(server: str, env: Mapping[str, str]) -> str:
    """The same as `find_proxy`, of a kind that can be used.

    Raises:
        konverge.errors.ConfigurationError: It cannot. The proxy is not quoted, since it may hold a password.
    """
    proxy = find_proxy(server, env)
    mistake = find_url_error(proxy, may_have_user=True) if proxy else ""
    if mistake:
        raise ConfigurationError(
            f"the proxy that HTTPS_PROXY or HTTP_PROXY names for {server} must start with http:// or https:// and be "
            f"a URL ({mistake}); other kinds of proxies are not supported. NO_PROXY names the servers that are reached "
            "without it"
        )
    return proxy


def find_proxy(server: str, env: Mapping[str, str]) -> str:
    """The proxy for that server, empty for none.

    As Go's HTTP client has it, which kubectl uses: either case of the names, loopback addresses never go through a
    proxy, and ``NO_PROXY`` holds hosts, domains (with or without a leading dot), addresses and CIDR ranges, each
    perhaps with a port; ``*`` switches proxies off.
    """
    parts = urlsplit(server)
    name = "https_proxy" if parts.scheme == "https" else "http_proxy"
    proxy = env.get(name.upper()) or env.get(name) or ""
    host = (parts.hostname or "").lower()
    if not proxy or not host or _is_loopback(host):
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    exceptions = env.get("NO_PROXY") or env.get("no_proxy") or ""
    if any(_matches_no_proxy(entry.strip().lower(), host, port) for entry in exceptions.split(",") if entry.strip()):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    address = _parse_ip_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _matches_no_proxy(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    address = _parse_ip_address(host)
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _parse_ip_address(entry) is not None:
        return address == _parse_ip_address(entry)
    name, _, entry_port = entry.rpartition(":")
    if name and entry_port.isdecimal():
        if int(entry_port) != port:
            return False
        entry = name.strip("[]")
    if _parse_ip_address(entry) is not None:
        return address == _parse_ip_address(entry)
    if entry.startswith("."):
        return host.endswith(entry)
    return host == entry or host.endswith(f".{entry}")


def _parse_ip_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
