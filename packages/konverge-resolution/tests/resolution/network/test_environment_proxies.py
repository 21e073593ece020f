"""The proxies of a user's environment: which connection goes through which."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from konverge_resolution._internal.network.environment_proxies import EnvironmentProxies
from konverge_resolution.network import AllowedNetworks, GuardedHttp, RefusedAddressError, TrustStore
from tests.resolution.network.http_servers import (
    FakeDns,
    ForwardProxy,
    RecordingHandler,
    serve_connections,
    serve_site,
)

PROXY = "http://proxy.example:3128"


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({"HTTPS_PROXY": PROXY}, ("https", "a.example", 443), PROXY),
        ({"HTTPS_PROXY": PROXY}, ("http", "a.example", 80), ""),
        ({"HTTP_PROXY": PROXY}, ("https", "a.example", 443), ""),
        ({"http_proxy": PROXY, "HTTP_PROXY": "http://other.example"}, ("http", "a.example", 80), PROXY),
        ({"ALL_PROXY": "socks5://a.example"}, ("https", "a.example", 443), ""),
        ({"https_proxy": "proxy.example:3128"}, ("https", "a.example", 443), PROXY),
        ({"https_proxy": " "}, ("https", "a.example", 443), ""),
    ],
)
def test_each_scheme_has_its_variable(environment: Mapping[str, str], url: tuple[str, str, int], expected: str) -> None:
    proxy = EnvironmentProxies.parse(environment).select(*url)
    assert ("" if proxy is None else proxy.url) == expected


@pytest.mark.parametrize(
    ("listed", "host", "is_direct"),
    [
        ("a.example", "a.example", True),
        ("a.example", "A.Example.", True),
        ("a.example", "sub.a.example", True),
        ("a.example", "nota.example", False),
        (".a.example", "sub.a.example", True),
        (".a.example", "a.example", False),
        ("*.a.example", "sub.a.example", True),
        ("*", "a.example", True),
        ("b.example, a.example ,", "a.example", True),
        ("a.example:443", "a.example", True),
        ("a.example:8443", "a.example", False),
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.0.0.0/8", "11.1.2.3", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3:443", "10.1.2.3", True),
        ("[::1]", "::1", True),
        ("fd00::/8", "fd00::1", True),
        ("fd00::/8", "10.0.0.1", False),
        ("10.0.0.0/8", "a.example", False),
        ("x" * 100_000, "a.example", False),
        ("a.example" + ":443" * 100_000, "a.example", False),
        ("a.example:" + "9" * 100_000, "a.example", False),
        ("[::1]:443", "::1", True),
        ("", "a.example", False),
    ],
)
def test_the_hosts_without_a_proxy_are_named_as_for_other_programs(listed: str, host: str, is_direct: bool) -> None:
    proxies = EnvironmentProxies.parse({"HTTPS_PROXY": PROXY, "NO_PROXY": listed})
    assert (proxies.select("https", host, 443) is None) == is_direct


@pytest.mark.parametrize("text", ["socks5://a.example", "http://ann:hunter2@", "hunter2 hunter2", "http://a.example/x"])
def test_a_variable_that_is_no_proxy_is_named_without_its_value(text: str) -> None:
    with pytest.raises(ValueError, match="variable HTTPS_PROXY: expected a proxy such as") as caught:
        EnvironmentProxies.parse({"HTTPS_PROXY": text})
    assert "hunter2" not in str(caught.value)


@pytest.mark.anyio
async def test_a_proxy_in_a_private_network_is_connected_to_but_nothing_else_there() -> None:
    handler = RecordingHandler()
    async with serve_site(handler) as site:
        proxy = ForwardProxy({"a.example": int(site.rpartition(":")[2])})
        async with serve_connections(proxy) as port:
            proxies = EnvironmentProxies.parse({"HTTP_PROXY": f"http://proxy.test:{port}", "NO_PROXY": "direct.test"})
            networks = AllowedNetworks(proxies=proxies.list_addresses())
            names = FakeDns({"proxy.test": [["127.0.0.1"]], "direct.test": [["127.0.0.1"]]})
            http = GuardedHttp(names, tls=TrustStore(), networks=networks, proxy=proxies)
            async with asyncio.timeout(10):
                response = await http.get("http://a.example/x", max_bytes=100)
                assert (response.body, proxy.asked) == (b"here", ["GET http://a.example/x HTTP/1.1"])
                for url in (f"http://direct.test:{port}/", f"http://127.0.0.1:{port}/"):
                    with pytest.raises(RefusedAddressError, match="its network is loopback"):
                        await http.get(url, max_bytes=100)
            proxies = EnvironmentProxies.parse({"HTTPS_PROXY": f"http://proxy.test:{port}"})
            networks = AllowedNetworks(proxies=proxies.list_addresses())
            http = GuardedHttp(names, tls=TrustStore(), networks=networks, proxy=proxies)
            with pytest.raises(RefusedAddressError, match="its network is that of a proxy of this user"):
                await http.get(f"http://proxy.test:{port}/", max_bytes=100)
    assert len(proxy.asked) == 1
