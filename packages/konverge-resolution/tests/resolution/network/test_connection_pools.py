"""Shared connections: between whom they are shared, and that no check is skipped."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SystemClock
from konverge_resolution._internal.network.connection_pools import ConnectionPools, OpenConnections, PoolKey
from konverge_resolution.network import AllowedNetworks, BrokenConnectionError, GuardedHttp, Proxy, TrustStore
from tests.resolution.network.http_servers import (
    LOOPBACK,
    FakeDns,
    ForwardProxy,
    RecordingHandler,
    certificate,
    serve_connections,
    serve_site,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> Any:
    return "asyncio", {}


def build_http(
    pools: ConnectionPools, tenant: str = "web", networks: AllowedNetworks = LOOPBACK, **more: Any
) -> GuardedHttp:
    trust = more.pop("tls", None) or TrustStore()
    return GuardedHttp(more.pop("names", FakeDns()), tls=trust, networks=networks, pools=pools, tenant=tenant, **more)


async def test_requests_of_one_tenant_with_the_same_networks_share_a_connection() -> None:
    site = RecordingHandler()
    async with serve_site(site) as url, ConnectionPools() as pools:
        for _ in range(3):
            assert (await build_http(pools).get(url, max_bytes=10)).body == b"here"
    assert (len(site.requests), len(site.peers)) == (3, 1)


async def test_another_tenant_or_other_networks_have_other_connections() -> None:
    site = RecordingHandler()
    async with serve_site(site) as url, ConnectionPools() as pools:
        await build_http(pools).get(url, max_bytes=10)
        await build_http(pools, "other").get(url, max_bytes=10)
        await build_http(pools, networks=AllowedNetworks(["127.0.0.1/32"])).get(url, max_bytes=10)
    assert len(site.peers) == 3


async def test_a_connection_is_not_used_where_its_address_is_not_permitted() -> None:
    site = RecordingHandler()
    async with serve_site(site) as url, ConnectionPools() as pools:
        await build_http(pools).get(url, max_bytes=10)
        with pytest.raises(Exception, match="loopback"):
            await build_http(pools, networks=AllowedNetworks()).get(url, max_bytes=10)
    assert len(site.requests) == 1


async def test_each_url_is_checked_also_on_an_open_connection() -> None:
    site, seen = RecordingHandler(), list[str]()
    async with serve_site(site) as url, ConnectionPools() as pools:
        http = build_http(pools).with_settings(check_hop=seen.append)
        for path in ("/a", "/b"):
            await http.get(f"{url}{path}", max_bytes=10)
    assert seen == [f"{url}/a", f"{url}/b"]
    assert len(site.peers) == 1


async def test_a_name_of_another_address_does_not_change_an_open_connection() -> None:
    names, site = FakeDns({"a.example": [["127.0.0.1"], ["10.0.0.1"]]}), RecordingHandler()
    async with serve_site(site) as url, ConnectionPools() as pools:
        address = url.replace("127.0.0.1", "a.example")
        for _ in range(2):
            await build_http(pools, names=names).get(address, max_bytes=10)
    assert names.asked == ["a.example"]


async def test_another_trust_has_another_connection(tmp_path: Path) -> None:
    authority, context = certificate(tmp_path)
    site = RecordingHandler()
    async with serve_site(site, tls=context) as url, ConnectionPools() as pools:
        trust = TrustStore(authority)
        await build_http(pools, tls=trust).get(url, max_bytes=10)
        await build_http(pools, tls=trust).get(url, max_bytes=10)
        with pytest.raises(Exception, match="certificate"):
            await build_http(pools, tls=TrustStore()).get(url, max_bytes=10)
    assert len(site.peers) == 1


async def test_another_proxy_has_another_connection() -> None:
    site, names = RecordingHandler(), FakeDns({"a.example": [["127.0.0.1"]]})
    async with serve_site(site) as url:
        port = int(url.rpartition(":")[2])
        proxy = ForwardProxy({"a.example": port})
        async with serve_connections(proxy) as proxy_port, ConnectionPools() as pools:
            http = build_http(pools, names=names)
            plain = Proxy.parse(f"http://127.0.0.1:{proxy_port}")
            with_user = Proxy.parse(f"http://ann:secret@127.0.0.1:{proxy_port}")
            for given in (http, http.with_settings(proxy=plain), http.with_settings(proxy=with_user)):
                assert (await given.get(f"http://a.example:{port}/a", max_bytes=10)).body == b"here"
    assert (len(proxy.asked), len(site.peers)) == (2, 3)
    assert len(proxy.users) == 1


async def test_a_connection_that_the_server_closed_meanwhile_costs_no_failure() -> None:
    connections, pending = 0, asyncio.Event()

    async def close_at_the_second_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
        await writer.drain()
        await reader.readuntil(b"\r\n\r\n")
        pending.set()

    async with serve_connections(close_at_the_second_request) as port, ConnectionPools() as pools:
        for _ in range(2):
            assert (await build_http(pools).get(f"http://127.0.0.1:{port}", max_bytes=10)).body == b"here"
    assert pending.is_set()
    assert connections == 2


async def test_a_server_that_closes_every_connection_is_asked_once() -> None:
    connections = 0

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.readuntil(b"\r\n\r\n")

    async with serve_connections(close) as port, ConnectionPools() as pools:
        with pytest.raises(BrokenConnectionError):
            await build_http(pools).get(f"http://127.0.0.1:{port}", max_bytes=10)
    assert connections == 1


async def test_a_request_with_a_body_is_never_sent_twice() -> None:
    requests = 0

    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        while await reader.readuntil(b"\r\n\r\n"):
            requests += 1
            if requests > 1:
                return
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()

    async with (
        serve_connections(break_off) as port,
        ConnectionPools() as pools,
        build_http(pools).session() as session,
    ):
        await session.get(f"http://127.0.0.1:{port}", max_bytes=10)
        with pytest.raises(BrokenConnectionError):
            await session.request("POST", f"http://127.0.0.1:{port}", body=b"", max_bytes=10)
    assert requests == 2


async def test_a_cancelled_request_leaves_no_connection_and_the_next_one_gets_its_own_response() -> None:
    answered = asyncio.Event()

    async def respond_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        if path == b"/slow":
            answered.set()
            await reader.read()  # until the client hangs up
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere")
        await writer.drain()
        await reader.read()

    async with serve_connections(respond_late) as port, ConnectionPools() as pools:
        slow = asyncio.create_task(build_http(pools).get(f"http://127.0.0.1:{port}/slow", max_bytes=10))
        await answered.wait()
        slow.cancel()
        await asyncio.wait([slow])
        assert (await build_http(pools).get(f"http://127.0.0.1:{port}/fast", max_bytes=10)).body == b"here"


async def test_idle_connections_are_closed_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge_resolution._internal.network.guarded_http.IDLE_SECONDS", 0.05)
    closed = asyncio.Event()

    async def notice_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await reader.read()
        closed.set()

    async with serve_connections(notice_the_end) as port, ConnectionPools() as pools:
        await build_http(pools).get(f"http://127.0.0.1:{port}", max_bytes=10)
        async with asyncio.timeout(5):
            await closed.wait()


class FakeConnections:
    def __init__(self) -> None:
        self.is_closed = False

    async def close(self) -> None:
        await SystemClock().sleep(0)
        self.is_closed = True


async def test_the_number_of_pools_is_limited_and_used_ones_stay() -> None:
    created: list[Any] = []

    def create() -> OpenConnections:
        connections: Any = FakeConnections()
        created.append(connections)
        return connections  # type: ignore[no-any-return]  # a pool only closes it

    async with ConnectionPools(max_pools=2) as pools, AsyncExitStack() as stack:
        await stack.enter_async_context(pools.borrow(PoolKey("a", ()), create))
        async with pools.borrow(PoolKey("b", ()), create):
            async with pools.borrow(PoolKey("c", ()), create):
                pass
            assert [each.is_closed for each in created] == [False, False, True]  # c had no free pool
        async with pools.borrow(PoolKey("d", ()), create):
            assert [each.is_closed for each in created] == [False, True, True, False]  # b made room
        async with pools.borrow(PoolKey("a", ()), create) as again:
            assert again is created[0]
    assert all(each.is_closed for each in created)
