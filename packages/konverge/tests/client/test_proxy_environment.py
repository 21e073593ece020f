"""The proxy from the environment variables."""

from __future__ import annotations

import pytest

from konverge._internal.client.proxy_environment import find_proxy

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "env", "proxy"),
    [
        ("https://api.example", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.example", {"https_proxy": PROXY}, PROXY),
        ("https://api.example", {"HTTP_PROXY": PROXY}, ""),
        ("http://api.example", {"HTTP_PROXY": PROXY}, PROXY),
        ("https://api.example", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://localhost:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://127.0.0.1:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", {"HTTPS_PROXY": PROXY}, ""),
        ("https://api.example", {}, ""),
    ],
)
def test_the_scheme_decides_and_loopback_needs_none(server: str, env: dict[str, str], proxy: str) -> None:
    assert find_proxy(server, env) == proxy


@pytest.mark.parametrize(
    ("exceptions", "direct"),
    [
        ("*", True),
        ("api.example.com", True),
        ("example.com", True),
        (".example.com", True),
        ("API.EXAMPLE.COM", True),
        (" other , example.com ", True),
        ("api.example.com:6443", True),
        ("api.example.com:443", False),
        ("ample.com", False),
        ("10.0.0.0/8", False),
        ("", False),
        (",,", False),
    ],
)
def test_exceptions_name_hosts_and_domains(exceptions: str, direct: bool) -> None:
    env = {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions}

    assert find_proxy("https://api.example.com:6443", env) == ("" if direct else PROXY)


@pytest.mark.parametrize(
    ("exceptions", "direct"),
    [
        ("10.0.0.0/8", True),
        ("10.1.2.3", True),
        ("10.1.2.3:6443", True),
        ("10.1.2.3:1", False),
        ("192.168.0.0/16", False),
        ("10.0.0.0/99", False),
        ("fd00::/8", False),
    ],
)
def test_exceptions_name_addresses_and_ranges(exceptions: str, direct: bool) -> None:
    env = {"HTTPS_PROXY": PROXY, "no_proxy": exceptions}

    assert find_proxy("https://10.1.2.3:6443", env) == ("" if direct else PROXY)
