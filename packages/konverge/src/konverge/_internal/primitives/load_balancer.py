"""The address of a load balancer, for Service and Ingress."""

from __future__ import annotations

from konverge._internal.kube import Object
from konverge._internal.primitives.field_access import read_items, read_text

__all__ = ["ADDRESS_ASSIGNED", "AWAITING_ADDRESS", "has_address"]

AWAITING_ADDRESS = "Awaiting load balancer IP/hostname assignment"
ADDRESS_ASSIGNED = "Load balancer IP/hostname assigned"


def has_address(live: Object) -> bool:
    """Return whether an entry of the load balancer has an IP or a hostname."""
    entries = read_items(live, "status", "loadBalancer", "ingress")
    return any(read_text(entry, "ip") or read_text(entry, "hostname") for entry in entries)
