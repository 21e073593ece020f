"""The networks that the calls of a Katalog need: a box calls private addresses only if it allows their network."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from konverge_box._internal.expressions import is_expression
from konverge_box._internal.katalog.findings import FindingCollector, FindingReason

__all__ = ["list_call_networks"]

_CLUSTER_NAME = re.compile(r"(?i)localhost|[^.]+|.+\.(svc|local|localhost|internal|cluster\.local)\.?")
_PRIVATE_NAME = FindingReason(
    "the address of a call",
    "the host has an address inside of the cluster or the company, which a box calls only if it allows the network",
    "list the network in spec.allowedNetworks of the box, for example that of the Services: 10.96.0.0/12",
)
_MADE_HOST = "a box calls a host with a private address only if spec.allowedNetworks has its network"


def list_call_networks(crds: dict[str, Any], names: dict[str, str], notes: FindingCollector) -> list[str]:
    """Return the networks of the literal private addresses in calls; add findings for private names.

    Args:
        crds: The converted custom resources, by their names in the box.
        names: The names in the box, by the names in the Katalog.
        notes: The collector.
    """
    networks: dict[str, None] = {}
    for name, here in names.items():
        for call in crds.get(here, {}).get("external", ()):
            path, host = ("spec", "crds", name), _find_host(call["url"])
            if is_expression(host) or not host:
                notes.add_note(path, f"call {call['name']}: {_MADE_HOST}")
            elif (address := _parse_address(host)) is not None:
                if not address.is_global:
                    networks[f"{address}/{address.max_prefixlen}"] = None
                    notes.add_note(path, f"call {call['name']}: allowedNetworks has its address {address}")
            elif _CLUSTER_NAME.fullmatch(host):
                what = f"{_PRIVATE_NAME.what} {call['name'][:60]} ({host[:100]})"
                notes.add_finding(path, _PRIVATE_NAME._replace(what=what))
    return list(networks)


def _find_host(url: str) -> str:
    """Return the host of a URL, which can contain expressions; empty if it is unknown."""
    after = url.partition("://")[2] or url
    authority = re.match(r"(?:\{\{.*?\}\}|[^/?#])*", after)
    text = authority[0].rpartition("@")[2] if authority else ""
    if is_expression(text):
        return text
    try:
        return urlsplit(f"//{text}").hostname or ""
    except ValueError:
        return ""


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
