"""The form of IP addresses and address ranges."""

from __future__ import annotations

import ipaddress

__all__ = ["ADDRESS_FORM", "CIDR_FORM", "is_address", "is_cidr"]

ADDRESS_FORM = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
CIDR_FORM = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def is_address(text: str) -> bool:
    """Return True if the text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_cidr(text: str) -> bool:
    """Return True if the text is an address with a prefix length."""
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return "/" in text
