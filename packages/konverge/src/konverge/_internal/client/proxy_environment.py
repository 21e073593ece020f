"""The proxy for a server from the environment (``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY``)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from konverge._internal.client.server_url import find_url_error
from konverge.errors import ConfigurationError

__all__ = ["find_proxy", "find_usable_proxy"]


def find_usable_proxy(server: str, env: Mapping[str, str]) -> str:
    """Return the proxy of `find_proxy` after a check that konverge supports it.

    Raises:
        konverge.errors.ConfigurationError: The proxy is not supported. The message does not quote it: it may contain a
            password.
    """
    proxy = find_proxy(server, env)
    problem = find_url_error(proxy, may_have_user=True) if proxy else ""
    if problem:
        raise ConfigurationError(
            f"the proxy in HTTPS_PROXY or HTTP_PROXY for {server}: expected an http:// or https:// URL: {problem}; "
            "other kinds of proxies are not supported. Add servers to NO_PROXY to connect without a proxy"
        )
    return proxy


def find_proxy(server: str, env: Mapping[str, str]) -> str:
    """Find the proxy for the server; empty for none.

    The rules are those of Go's HTTP client, which kubectl uses. Upper and lower case names are valid. Loopback
    addresses never use a proxy. ``NO_PROXY`` contains hosts, domains (with or without a leading dot), addresses and
    CIDR ranges, each optionally with a port; ``*`` disables proxies.
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
