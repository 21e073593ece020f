"""A load balancer's address, which comes from outside: what Service and Ingress wait for."""

from __future__ import annotations

from konverge.kube import Object
from konverge.primitives.reading import items_at, text_at

__all__ = ["ADDRESS_ASSIGNED", "AWAITING_ADDRESS", "has_address"]

AWAITING_ADDRESS = "Awaiting load balancer IP/hostname assignment"
ADDRESS_ASSIGNED = "Load balancer IP/hostname assigned"


def has_address(live: Object) -> bool:
    """Tell whether some entry of the load balancer has an IP or a hostname."""
    entries = items_at(live, "status", "loadBalancer", "ingress")
    return any(text_at(entry, "ip") or text_at(entry, "hostname") for entry in entries)
