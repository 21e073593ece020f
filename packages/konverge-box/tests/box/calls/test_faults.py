"""Servers that hang, close connections early, lie and flood."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import pytest

from konverge.clock import SystemClock
from konverge_box._internal.calls import Caller, CallError
from tests.box.calls.call_fixtures import build_caller, run_calls
from tests.resolution.network.http_servers import (
    ConnectionHandler,
    never_respond,
    respond_with_bytes,
    serve_connections,
)

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


async def error_of(talk: ConnectionHandler, **more: Any) -> str:
    async with serve_connections(talk) as port:
        text = f"[{{name: a, url: 'http://127.0.0.1:{port}/secret-path', timeout: 300ms, continueOnError: true}}]"
        found = await run_calls(text, **more)
    error: str = found["a"]["error"]
    assert found["a"]["ok"] is False
    assert "secret-path" not in error
    return error


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def drips(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await SystemClock().sleep(0.02)


async def floods(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


async def heads_without_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-Header: value\r\n" * 1000)
        await writer.drain()


def bomb(mebibytes: int) -> bytes:
    """Return a compressed body: one compressed part, repeated, since compressing everything takes a second."""
    packing = zlib.compressobj(wbits=31)
    head, part = (packing.compress(b"0" * (1 << 20)) + packing.flush(zlib.Z_FULL_FLUSH) for _ in range(2))
    return head + part * (mebibytes - 1)


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = bomb(200)
FAULTS: dict[str, tuple[ConnectionHandler, str]] = {
    "hangs": (never_respond, "did not respond within 0.3 s"),
    "hangs after its head": (drips, "did not respond within 0.3 s"),
    "resets": (resets, "closed the connection without a response"),
    "says nothing": (respond_with_bytes(b""), "closed the connection without a response"),
    "breaks off": (
        respond_with_bytes(OK + b"Content-Length: 100\r\n\r\n{"),
        "closed the connection in the middle of its response",
    ),
    "breaks off in chunks": (
        respond_with_bytes(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"),
        "closed the connection in the middle",
    ),
    "floods": (floods, "expected a response of at most 1 MiB, found a longer one"),
    "announces too much": (
        respond_with_bytes(OK + b"Content-Length: 999999999999\r\n\r\n" + b" " * 2_000_000),
        "at most 1 MiB",
    ),
    "bombs": (respond_with_bytes(OK + b"Content-Encoding: gzip\r\n\r\n" + BOMB), "at most 1 MiB"),
    "speaks another language": (
        respond_with_bytes(b"SSH-2.0-OpenSSH_9.9\r\n\r\n"),
        "returned an invalid HTTP response",
    ),
    "has an endless header": (
        respond_with_bytes(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000_000),
        "sends headers above the limit",
    ),
    "has headers without end": (heads_without_end, "sends headers above the limit"),
    "has a negative length": (
        respond_with_bytes(OK + b"Content-Length: -5\r\n\r\n{}"),
        "returned an invalid HTTP response",
    ),
    "says more than it announced": (
        respond_with_bytes(OK + b'Content-Length: 7\r\n\r\n{"a":1}{"b":2}'),
        "returned an invalid HTTP response",
    ),
    "nests": (respond_with_bytes(OK + b"\r\n" + b"[" * 100_000), "expected JSON of at most 50 levels"),
}


@pytest.mark.parametrize(("talk", "error"), FAULTS.values(), ids=FAULTS)
async def test_a_server_with_a_fault_is_an_error_in_time_and_leaves_no_connection(
    talk: ConnectionHandler, error: str
) -> None:
    assert error in await error_of(talk)


async def test_nobody_listening_is_an_error() -> None:
    async with serve_connections(never_respond) as port:
        pass
    with pytest.raises(CallError, match="cannot be connected to: connect"):
        await run_calls(f"[{{name: a, url: 'http://127.0.0.1:{port}'}}]")


async def test_each_attempt_has_the_whole_time() -> None:
    asked = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await never_respond(reader, writer)
        await respond_with_bytes(OK + b"\r\n{}")(reader, writer)

    async with serve_connections(talk) as port:
        text = f"[{{name: a, url: 'http://127.0.0.1:{port}', timeout: 300ms, retry: {{attempts: 2}}}}]"
        assert (await run_calls(text))["a"]["ok"]
    assert asked == 2


async def test_a_connection_that_breaks_is_not_used_again_by_anything_but_a_declared_retry() -> None:
    asked = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        await resets(reader, writer)

    async with serve_connections(talk) as port:
        with pytest.raises(CallError, match="closed the connection without a response"):
            await run_calls(f"[{{name: a, url: 'http://127.0.0.1:{port}', method: DELETE}}]")
    assert asked == 1


async def test_the_resolution_of_the_name_is_a_part_of_the_time() -> None:
    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    before = asyncio.all_tasks()
    with pytest.raises(CallError, match=r"did not respond within 0.1 s"):
        await run_calls("[{name: a, url: 'http://slow.example', timeout: 100ms}]", by=build_caller(lookup=never))
    assert asyncio.all_tasks() == before


async def test_a_cancelled_pass_leaves_no_connection_and_no_task() -> None:
    arrived = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await never_respond(reader, writer)

    before = asyncio.all_tasks()
    async with serve_connections(talk) as port, build_caller() as by:
        text = f"[{{name: a, url: 'http://127.0.0.1:{port}', timeout: 1m, cacheFor: 1m}}]"
        task = asyncio.create_task(run_calls(text, by=by))
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    assert asyncio.all_tasks() == before


async def test_a_host_that_hangs_holds_up_nobody_but_those_who_ask_it() -> None:
    answer = respond_with_bytes(OK + b"\r\n{}")
    async with serve_connections(never_respond) as dead, serve_connections(answer) as alive, build_caller() as by:
        text = f"[{{name: a, url: 'http://127.0.0.1:{dead}', timeout: 1m}}]"
        waiting = [asyncio.create_task(run_calls(text, by=by)) for _ in range(300)]
        found = await asyncio.wait_for(run_calls(f"[{{name: a, url: 'http://127.0.0.1:{alive}'}}]", by=by), 5)
        assert found["a"]["ok"]
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
    assert_forgotten(by)


async def test_a_host_gets_no_more_than_its_share_at_once() -> None:
    at_once = most = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await SystemClock().sleep(0.01)
        await respond_with_bytes(OK + b"\r\n{}")(reader, writer)
        at_once -= 1

    async with serve_connections(talk) as port, build_caller() as by:
        text = f"[{{name: a, url: 'http://127.0.0.1:{port}'}}]"
        await asyncio.gather(*(run_calls(text, by=by) for _ in range(40)))
    assert most == 8
    assert_forgotten(by)


def assert_forgotten(by: Caller) -> None:
    """Check that hosts without calls use no memory."""
    assert len(by._bounds) == 0
