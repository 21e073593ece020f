"""The resolution of names and the check of addresses."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SystemClock
from konverge_box._internal.calls import CallError
from konverge_resolution.network import DnsResolver as MachineNames
from konverge_resolution.network import TrustStore
from tests.box.calls.call_fixtures import build_caller, respond_with, run_calls, serve_site
from tests.resolution.network.http_servers import FakeDns, certificate, never_respond, serve_connections
from tests.resolution.network.http_servers import serve_site as served_site

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


def port_of(url: str) -> str:
    return url.rpartition(":")[2]


async def test_a_name_is_reached_by_the_address_that_was_judged() -> None:
    names = FakeDns({"prices.example": [["127.0.0.1"]]})
    async with serve_site(a=respond_with({"here": True})) as url:
        text = f"[{{name: a, url: 'http://prices.example:{port_of(url)}/a'}}]"
        assert (await run_calls(text, by=build_caller(lookup=names)))["a"]["here"] is True


async def test_a_name_with_a_private_address_is_refused_with_host_address_and_the_field_to_change() -> None:
    names = FakeDns({"db.example": [["10.1.2.3"]]})
    with pytest.raises(CallError) as failure:
        await run_calls("[{name: a, url: 'http://db.example/'}]", by=build_caller(lookup=names), allowed=())
    assert failure.value.problem == (
        "a: db.example (10.1.2.3) may not be reached: its network is private. Expected a public address, or one in a "
        "network of spec.allowedNetworks"
    )


async def test_a_name_that_is_something_else_the_second_time_gains_nothing() -> None:
    names = FakeDns({"evil.example": [["127.0.0.1"], ["127.0.0.2"]]})
    async with serve_site(a=respond_with({})) as url:
        text = f"[{{name: a, url: 'http://evil.example:{port_of(url)}/a'}}]"
        by = build_caller(lookup=names)
        assert (await run_calls(text, by=by, allowed=["127.0.0.1"]))["a"]["ok"]
        with pytest.raises(CallError, match=r"evil.example \(127.0.0.2\) may not be reached"):
            await run_calls(text, by=by, allowed=["127.0.0.1"])
    assert names.asked == ["evil.example"] * 2


async def test_one_connection_asks_for_its_name_once() -> None:
    names = FakeDns({"prices.example": [["127.0.0.1"], ["169.254.169.254"]]})
    async with serve_site(a=respond_with({})) as url:
        text = f"[{{name: a, url: 'http://prices.example:{port_of(url)}/a'}}]"
        assert (await run_calls(text, by=build_caller(lookup=names)))["a"]["ok"]
    assert names.asked == ["prices.example"]


async def test_of_several_addresses_those_are_left_out_that_may_not_be_reached() -> None:
    names = FakeDns({"mixed.example": [["169.254.169.254", "127.0.0.1", "10.0.0.1"]]})
    async with serve_site(a=respond_with({"here": True})) as url:
        text = f"[{{name: a, url: 'http://mixed.example:{port_of(url)}/a'}}]"
        assert (await run_calls(text, by=build_caller(lookup=names)))["a"]["here"] is True


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "169.254.169.254", "[fd00::1]", "[::ffff:127.0.0.1]", "0.0.0.0"]
)
async def test_an_address_in_place_of_a_name_is_judged_as_well(host: str) -> None:
    with pytest.raises(CallError, match="may not be reached"):
        await run_calls(f"[{{name: a, url: 'http://{host}:1/'}}]", allowed=())


@pytest.mark.parametrize("protocol", ["redis", "postgres"])
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "db.example"])
async def test_other_protocols_are_judged_as_well(protocol: str, host: str) -> None:
    query = {"redis": "GET a", "postgres": "SELECT 1"}[protocol]
    names = FakeDns({"db.example": [["10.1.2.3"]]})
    with pytest.raises(CallError, match="may not be reached"):
        await run_calls(
            f"[{{name: a, protocol: {protocol}, url: '{protocol}://{host}:1/', query: {query}}}]",
            by=build_caller(lookup=names),
            allowed=(),
        )


@pytest.mark.parametrize("scheme", ["http", "redis", "postgres"])
async def test_a_name_that_nobody_knows_is_an_error(scheme: str) -> None:
    query = {"redis": ", query: GET a", "postgres": ", query: SELECT 1", "http": ""}[scheme]
    with pytest.raises(CallError, match=r"no-such\.example|cannot be"):
        await run_calls(f"[{{name: a, protocol: {scheme}, url: '{scheme}://no-such.example/'{query}}}]")


async def test_the_machines_resolver_asks_for_a_name_once_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    go = threading.Event()

    def resolve(host: str, port: int, **options: Any) -> list[Any]:
        asked.append(host)
        if host == "dead.example":
            go.wait(10)
            raise OSError("no answer")
        return [(0, 0, 0, "", ("192.0.2.1", port))] * 2

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    names = MachineNames()
    try:
        # Many more calls than threads.
        dead = [asyncio.create_task(names("dead.example", 80)) for _ in range(100)]
        assert await names("alive.example", 80) == ["192.0.2.1"]
        dead[0].cancel()
        go.set()
        found = await asyncio.gather(*dead, return_exceptions=True)
        assert [type(each) for each in found[1:]] == [OSError] * 99
        assert asked.count("dead.example") == 1
    finally:
        go.set()
        names.close()


async def test_names_that_hang_when_the_process_ends_hold_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: go.wait(10) and [])
    names = MachineNames()
    hanging = [asyncio.create_task(names(f"dead-{number}.example", 80)) for number in range(50)]
    await SystemClock().sleep(0)
    try:
        names.close()
        await asyncio.wait(hanging, timeout=1)
        assert all(task.cancelled() for task in hanging)
    finally:
        go.set()


async def test_names_that_hang_are_not_piled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **options: go.wait(10) and [])
    names = MachineNames()
    hanging = [asyncio.create_task(names(f"dead-{number}.example", 80)) for number in range(1024)]
    await SystemClock().sleep(0)
    try:
        with pytest.raises(OSError, match="too many concurrent name lookups"):
            await names("one-more.example", 80)
    finally:
        go.set()
        names.close()
        await asyncio.wait(hanging)


@pytest.mark.parametrize("protocol", ["http", "redis", "postgres"])
async def test_an_address_where_nobody_listens_is_passed_over_for_the_next(protocol: str) -> None:
    query = {"redis": ", query: GET a", "postgres": ", query: SELECT 1", "http": ""}[protocol]
    names = FakeDns({"two.example": [["127.0.0.2", "127.0.0.1"]]})
    reached = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()

    async with serve_connections(talk) as port:
        text = f"[{{name: a, protocol: {protocol}, url: '{protocol}://two.example:{port}'{query}}}]"
        with pytest.raises(CallError):
            await run_calls(text, by=build_caller(lookup=names))
    assert reached.is_set()


async def test_a_certificate_that_is_not_trusted_is_an_error_and_one_that_is_works(tmp_path: Path) -> None:
    names = FakeDns({"tls.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]})
    authority, served = certificate(tmp_path)
    async with served_site(respond_with({"here": True}), tls=served) as url:
        text = f"[{{name: a, url: 'https://%s.example:{port_of(url)}/', continueOnError: true}}]"
        found = await run_calls(text % "tls", by=build_caller(lookup=names, tls=TrustStore(authority)))
        other = await run_calls(text % "other", by=build_caller(lookup=names, tls=TrustStore(authority)))
        unknown = await run_calls(text % "tls", by=build_caller(lookup=names))
    assert found["a"]["here"] is True
    assert "has a certificate that is not trusted" in other["a"]["error"]
    assert "has a certificate that is not trusted" in unknown["a"]["error"]


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux tells the state of a connection")
async def test_a_tls_connection_that_is_given_up_is_closed_without_waiting_for_the_other_side(tmp_path: Path) -> None:
    authority, served = certificate(tmp_path)
    names = FakeDns({"tls.example": [["127.0.0.1"]]})
    gone = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()  # and does not read the closing of the connection
        connection = writer.get_extra_info("socket")
        while connection.fileno() >= 0 and not is_closed_by_peer(connection):
            await SystemClock().sleep(0.01)
        gone.set()
        writer.transport.abort()

    made = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=served)
    async with made:
        text = f"[{{name: a, url: 'https://tls.example:{made.sockets[0].getsockname()[1]}/', timeout: 200ms}}]"
        with pytest.raises(CallError, match="did not respond"):
            await run_calls(text, by=build_caller(lookup=names, tls=TrustStore(authority)))
        await asyncio.wait_for(gone.wait(), 3)


def is_closed_by_peer(connection: socket.socket) -> bool:
    # The state of the kernel (struct tcp_info begins with it; 1 is established).
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != 1


@pytest.mark.slow
async def test_a_server_that_never_ends_its_handshake_is_given_up_in_time() -> None:
    async with serve_connections(never_respond) as port:
        for protocol, scheme, query in (("http", "https", ""), ("redis", "rediss", ", query: GET a")):
            text = f"[{{name: a, protocol: {protocol}, url: '{scheme}://127.0.0.1:{port}', timeout: 200ms{query}}}]"
            with pytest.raises(CallError, match=r"did not respond within 0.2 s"):
                await run_calls(text)
