"""Servers that hang, break off, lie and flood; callers that give up."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from konverge.clock import SystemClock
from konverge_resolution.network import (
    AllowedNetworks,
    BrokenConnectionError,
    HostUnreachableError,
    HttpResponse,
    MalformedResponseError,
    NetworkError,
    ResponseTooLargeError,
    resolve_permitted,
)
from konverge_resolution.network import DnsResolver as MachineNames
from tests.resolution.network.http_servers import (
    ConnectionHandler,
    FakeDns,
    HangingDns,
    build_guarded_http,
    certificate,
    never_respond,
    respond_with_bytes,
    serve_connections,
    serve_site,
)

pytestmark = pytest.mark.anyio

MANY = 1 << 20
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


async def get_response(port: int, *, path: str = "/secret-path", max_bytes: int = MANY) -> HttpResponse:
    return await build_guarded_http().get(f"http://127.0.0.1:{port}{path}", max_bytes=max_bytes)


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


def forever(head: bytes, piece: bytes) -> ConnectionHandler:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()

    return talk


def respond_with_encoding(coding: str, body: bytes) -> ConnectionHandler:
    return respond_with_bytes(OK + f"Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


GZIP = gzip.compress(b"content")
FAULTS: dict[str, tuple[ConnectionHandler, type[NetworkError], str]] = {
    "resets": (resets, BrokenConnectionError, "closed the connection without a response"),
    "says nothing": (respond_with_bytes(b""), BrokenConnectionError, "closed the connection without a response"),
    "breaks off": (respond_with_bytes(OK + b"Content-Length: 100\r\n\r\n{"), BrokenConnectionError, "in the middle"),
    "breaks off in chunks": (respond_with_bytes(CHUNKED + b"5\r\n{"), BrokenConnectionError, "in the middle"),
    "floods": (
        forever(CHUNKED, b"10000\r\n" + b"x" * 65536 + b"\r\n"),
        ResponseTooLargeError,
        "sends more than 1048576",
    ),
    "floods without a length": (forever(OK + b"\r\n", b"x" * 65536), ResponseTooLargeError, "sends more than 1048576"),
    "floods in small chunks": (
        forever(CHUNKED, b"4\r\nxxxx\r\n" * 9999),
        ResponseTooLargeError,
        "sends more than 1048576",
    ),
    "announces too much": (
        respond_with_bytes(OK + b"Content-Length: 999999999999\r\n\r\n"),
        ResponseTooLargeError,
        "sends more than",
    ),
    "bombs": (
        respond_with_encoding("gzip", gzip.compress(b"0" * (20 << 20))),
        ResponseTooLargeError,
        "sends more than 1048576",
    ),
    "packs nothing for ever": (
        # Empty blocks of deflate: bytes that never become any content.
        forever(OK + b"Content-Encoding: deflate\r\n\r\n" + b"\x78\x9c", b"\x00\x00\x00\xff\xff" * 9999),
        ResponseTooLargeError,
        "sends more than 1048576",
    ),
    "packs in another way": (
        respond_with_encoding("br", b"abc"),
        MalformedResponseError,
        "an unsupported encoding",
    ),
    "does not pack at all": (respond_with_encoding("gzip", b"plain"), MalformedResponseError, "cannot be decompressed"),
    "ends in the middle": (respond_with_encoding("gzip", GZIP[:-9]), MalformedResponseError, "ends in the middle"),
    "goes on after the end": (respond_with_encoding("gzip", GZIP + GZIP), MalformedResponseError, "after the end"),
    "speaks another language": (
        respond_with_bytes(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"),
        MalformedResponseError,
        "invalid HTTP",
    ),
    "has an endless header": (forever(OK + b"X: ", b"x" * 65536), ResponseTooLargeError, "headers above the limit"),
    "has headers without end": (
        forever(OK, b"X-Header: value\r\n" * 1000),
        ResponseTooLargeError,
        "sends headers",
    ),
    "has a negative length": (
        respond_with_bytes(OK + b"Content-Length: -5\r\n\r\n{}"),
        MalformedResponseError,
        "invalid HTTP",
    ),
    "has two lengths": (
        respond_with_bytes(OK + b"Content-Length: 2\r\nContent-Length: 20\r\n\r\n{}"),
        MalformedResponseError,
        "invalid HTTP",
    ),
}


@pytest.mark.parametrize(("talk", "failure", "problem"), FAULTS.values(), ids=FAULTS)
async def test_a_server_with_a_fault_is_an_error_that_shows_no_path_and_leaves_no_connection(
    talk: ConnectionHandler, failure: type[NetworkError], problem: str
) -> None:
    async with serve_connections(talk) as port:
        with pytest.raises(failure) as raised:
            await asyncio.wait_for(get_response(port), 5)
    assert problem in str(raised.value)
    assert f"127.0.0.1:{port}" in str(raised.value)
    assert "secret-path" not in str(raised.value)


async def test_a_length_that_is_too_short_does_not_spoil_the_next_answer() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        await never_respond(reader, writer)

    async with serve_connections(talk) as port, build_guarded_http().session() as session:
        for _ in range(2):
            # What came too much is refused, or thrown away with its connection; it is the answer to nothing.
            assert await _body(session.get(f"http://127.0.0.1:{port}", max_bytes=MANY)) != b"evil"


async def _body(asked: Awaitable[HttpResponse]) -> bytes:
    try:
        return (await asked).body
    except NetworkError as error:
        return str(error).encode()


LIMITS = {
    "length": lambda body: OK + f"Content-Length: {len(body)}\r\n\r\n".encode() + body,
    "no length": lambda body: OK + b"\r\n" + body,
    "chunks": lambda body: CHUNKED + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n",
    "gzip": lambda body: OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(body),
    "deflate": lambda body: OK + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(body),
}


@pytest.mark.parametrize("made", LIMITS.values(), ids=LIMITS)
async def test_as_much_as_is_allowed_is_read_and_one_byte_more_is_refused(made: Callable[[bytes], bytes]) -> None:
    async with serve_connections(respond_with_bytes(made(b"x" * MANY))) as port:
        assert len((await get_response(port)).body) == MANY
    async with serve_connections(respond_with_bytes(made(b"x" * (MANY + 1)))) as port:
        with pytest.raises(ResponseTooLargeError):
            await get_response(port)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells it in this way")
async def test_a_huge_body_takes_no_memory_whether_it_is_refused_or_read_in_pieces() -> None:
    size = 256 << 20

    async def huge(request: web.BaseRequest) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Length": str(size)})
        await answer.prepare(request)
        try:
            for _ in range(size >> 20):
                await answer.write(b"x" * MANY)
        except ConnectionError:
            pass
        return answer

    async with serve_site(huge) as url:
        before = most = resident_bytes()
        with pytest.raises(ResponseTooLargeError):
            await build_guarded_http().get(url, max_bytes=MANY)
        read = 0
        async with build_guarded_http().stream(url, max_bytes=size) as found:
            async for piece in found.iter_chunks():
                read += len(piece)
                most = max(most, resident_bytes()) if read % 16 == 0 else most
    assert read == size
    assert max(most, resident_bytes()) - before <= 50 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.parametrize("reads", [False, True], ids=["before the head", "in the body"])
async def test_a_deadline_of_the_caller_ends_a_server_that_hangs_or_drips(reads: bool) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if reads:
            writer.write(OK + b"Content-Length: 100000\r\n\r\n")
        while not reader.at_eof() and reads:
            writer.write(b"x")
            await writer.drain()
            await SystemClock().sleep(0.02)
        await never_respond(reader, writer)

    before = asyncio.all_tasks()
    async with serve_connections(talk) as port:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await get_response(port)
    assert asyncio.all_tasks() == before


async def test_the_resolution_of_a_name_ends_with_the_deadline() -> None:
    class Never(FakeDns):
        async def __call__(self, host: str, port: int) -> list[str]:
            await asyncio.Event().wait()
            return []

    before = asyncio.all_tasks()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await build_guarded_http(Never()).get("http://slow.example/", max_bytes=MANY)
    assert asyncio.all_tasks() == before


async def test_names_that_nobody_answers_for_hold_up_only_who_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = HangingDns("192.0.2.1")
    monkeypatch.setattr("konverge_resolution._internal.network.dialer._query_addresses", machine)
    names = MachineNames()
    greedy = [asyncio.ensure_future(names.lookup_for("greedy")(f"hangs-{number}", 80)) for number in range(100)]
    try:
        await machine.wait_for_lookups(8)
        for task in greedy[:50]:
            task.cancel()  # which ends no thread
        async with asyncio.timeout(5):
            assert await names.lookup_for("modest")("answers", 80) == ["192.0.2.1"]
            machine.release()
            assert await asyncio.gather(*greedy[50:]) == [["192.0.2.1"]] * 50
    finally:
        machine.release()
        await asyncio.wait(greedy)
        names.close()


async def test_no_more_names_are_waited_for_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(
        "konverge_resolution._internal.network.dialer._query_addresses", lambda host, port: [str(answered.wait(10))]
    )
    names = MachineNames()
    waiting = [asyncio.ensure_future(names(f"hangs-{number}", 80)) for number in range(1024)]
    try:
        await SystemClock().sleep(0)
        async with asyncio.timeout(5):
            with pytest.raises(OSError, match="too many concurrent name lookups"):
                await names("one-more", 80)
    finally:
        answered.set()
        await asyncio.wait(waiting)
        names.close()


async def test_of_a_name_with_endless_addresses_some_are_tried() -> None:
    endless = FakeDns({"a.example": [[f"8.8.{number}.8" for number in range(200)]]})
    assert len(await resolve_permitted("a.example", 80, endless, AllowedNetworks())) == 32


async def test_a_request_is_sent_once_even_when_its_kept_connection_breaks() -> None:
    asked = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while True:
            await reader.readuntil(b"\r\n\r\n")
            asked += 1
            if asked == 2:
                return
            writer.write(OK + b"Content-Length: 2\r\n\r\n{}")

    async with serve_connections(talk) as port, build_guarded_http().session() as session:
        await session.get(f"http://127.0.0.1:{port}", max_bytes=MANY)
        with pytest.raises(BrokenConnectionError, match="closed the connection without a response"):
            await session.get(f"http://127.0.0.1:{port}", max_bytes=MANY)
    assert asked == 2


async def test_an_address_where_nobody_listens_is_passed_over_for_the_next() -> None:
    names = FakeDns({"two.example": [["127.0.0.2", "127.0.0.1"]]})
    async with serve_connections(respond_with_bytes(OK + b"Content-Length: 2\r\n\r\n{}")) as port:
        answer = await build_guarded_http(names).get(f"http://two.example:{port}/", max_bytes=MANY)
    assert answer.body == b"{}"
    with pytest.raises(HostUnreachableError, match="cannot be connected to: ") as failure:
        await build_guarded_http(names).get(f"http://two.example:{port}/", max_bytes=MANY)
    assert "127.0.0" not in str(failure.value)


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="only Linux tells the state of a connection")
async def test_a_tls_connection_that_is_given_up_is_closed_without_waiting_for_the_other_side(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    asked, gone = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()  # so the server does not see the close_notify of the client
        asked.set()
        connection = writer.get_extra_info("socket")
        # The kernel's own word for it (struct tcp_info begins with the state; 1 is established).
        while connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == 1:
            await SystemClock().sleep(0.01)
        gone.set()
        writer.transport.abort()

    made = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    async with made:
        url = f"https://127.0.0.1:{made.sockets[0].getsockname()[1]}/"
        request = asyncio.create_task(build_guarded_http(authorities=authority).get(url, max_bytes=MANY))
        await asyncio.wait_for(asked.wait(), 30)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await asyncio.wait_for(gone.wait(), 10)  # the polite end of TLS would wait half a minute
