"""Which addresses may be reached."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution.network import AllowedNetworks

REFUSED = {
    "127.0.0.1": "loopback",
    "127.8.9.1": "loopback",
    "::1": "loopback",
    "169.254.169.254": "link-local",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "10.1.2.3": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.0.1": "private",
    "fd00:ec2::254": "private",
    "100.64.0.1": "shared by a carrier",
    "100.100.100.200": "shared by a carrier",
    "168.63.129.16": "a cloud's own service",
    "224.0.0.1": "multicast",
    "ff02::1": "multicast",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "::": "unspecified",
    "255.255.255.255": "reserved",
    "192.0.0.192": "reserved",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:169.254.169.254": "link-local",
    "64:ff9b::a9fe:a9fe": "link-local",
    "64:ff9b::10.0.0.1": "private",
    "64:ff9b:1::1": "a private translation",
    "2002:a9fe:a9fe::1": "a tunnel (6to4)",
    "2001:0:a9fe:a9fe::1": "reserved",
    "::127.0.0.1": "not public",
    "fec0::1": "not public",
    "4000::1": "not public",
    "localhost": "no address",
    "": "no address",
}


@pytest.mark.parametrize(("address", "kind"), REFUSED.items())
def test_an_address_that_is_not_public_is_refused_by_its_kind(address: str, kind: str) -> None:
    assert AllowedNetworks().find_refusal(address) == kind


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:2800::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
)
def test_a_public_address_may_be_reached(address: str) -> None:
    assert AllowedNetworks().find_refusal(address) == ""


@pytest.mark.parametrize(
    ("network", "address"),
    [
        ("10.0.0.0/8", "10.1.2.3"),
        ("10.1.2.3", "10.1.2.3"),
        ("10.0.0.0/8", "::ffff:10.1.2.3"),
        ("10.0.0.0/8", "64:ff9b::10.1.2.3"),
        ("64:ff9b::/96", "64:ff9b::10.1.2.3"),
        ("2002::/16", "2002:a00:1::1"),
        ("fd00::/8", "fd00::1"),
        ("169.254.169.254/32", "169.254.169.254"),
    ],
)
def test_an_allowed_network_may_be_reached(network: str, address: str) -> None:
    assert AllowedNetworks([network]).find_refusal(address) == ""


def test_an_allowed_network_allows_no_other() -> None:
    networks = AllowedNetworks(["10.0.0.0/8"])
    assert networks.find_refusal("11.0.0.1") == ""
    assert networks.find_refusal("192.168.0.1") == "private"
    assert networks.find_refusal("64:ff9b::192.168.0.1") == "private"
    assert networks.find_refusal("::ffff:127.0.0.1") == "loopback"


@given(st.ip_addresses())
def test_what_python_knows_as_not_global_is_refused(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    is_refused = bool(AllowedNetworks().find_refusal(str(address)))
    assert is_refused or address.is_global
