"""Clients without credentials: slow, many or missing requests delay no other client."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from konverge._internal.runtime.webhooks import (
    AdmissionResponse,
    AdmissionReview,
    OperatorHooks,
    ServerLimits,
    WebhookOptions,
    WebhookServer,
)
from tests.runtime.webhooks.sample_reviews import build_admission_review, build_hook, encode_review

pytestmark = pytest.mark.anyio

PATH = build_hook().path
REVIEW = encode_review(build_admission_review())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Stranger:
    def __init__(self, reader: asyncio.StreamReader, transport: asyncio.Transport) -> None:
        self.reader = reader
        self.transport = transport

    def say(self, text: bytes) -> None:
        self.transport.write(text)

    def begin(self, length: int, body: bytes = b"") -> None:
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        self.say(head.encode() + body)

    async def ask(self) -> bytes:
        self.begin(len(REVIEW), REVIEW)
        return await self.status()

    async def status(self) -> bytes:
        async with asyncio.timeout(10):
            return (await self.reader.readline())[9:12]

    async def until_closed(self) -> None:
        async with asyncio.timeout(10):
            try:
                while await self.reader.read(65536):
                    pass
            except OSError:
                pass


class Town:
    def __init__(self, server: WebhookServer, stack: AsyncExitStack) -> None:
        self._server = server
        self._stack = stack

    async def stranger(self, *, tls: bool = True) -> Stranger:
        context = ssl.create_default_context(cadata=self._server.endpoint.ca_bundle.decode()) if tls else None
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: asyncio.StreamReaderProtocol(reader), "127.0.0.1", self._server.port, ssl=context
        )
        self._stack.callback(transport.abort)
        return Stranger(reader, transport)


@asynccontextmanager
async def serving(review: Any = None, **limits: Any) -> AsyncIterator[Town]:
    hooks = OperatorHooks((build_hook(review) if review else build_hook(),))
    async with (
        WebhookServer(WebhookOptions(port=0, limits=ServerLimits(**limits)), hooks) as server,
        AsyncExitStack() as end,
    ):
        yield Town(server, end)


async def test_bodies_that_do_not_come_take_no_place_from_those_that_do() -> None:
    async with serving(concurrent=2, waiting=0, receive_seconds=30) as town:
        for _ in range(5):
            (await town.stranger()).begin(1000, b"{")

        assert await (await town.stranger()).ask() == b"200"


@pytest.mark.slow
async def test_a_body_has_a_deadline() -> None:
    async with serving(receive_seconds=0.1) as town:
        slow = await town.stranger()
        slow.begin(1000, b"{")

        assert await slow.status() == b"408"
        await slow.until_closed()


async def test_the_largest_body_is_dropped_when_all_together_are_too_large() -> None:
    async with serving(all_bytes=200_000, receive_seconds=30) as town:
        greedy = await town.stranger()
        greedy.begin(1_000_000, b"x" * 150_000)
        modest = await town.stranger()
        modest.begin(1_000_000, b"x" * 100_000)

        await greedy.until_closed()
        assert await (await town.stranger()).ask() == b"200"
        modest.say(b"x" * 150_000)
        assert await modest.status() == b"429"


@pytest.mark.parametrize("head", [b"", b"POST / HTTP/1.1\r\nHost: "])
async def test_a_client_without_a_complete_head_is_disconnected(head: bytes) -> None:
    async with serving(receive_seconds=0.1) as town:
        silent = await town.stranger()
        silent.say(head)

        await silent.until_closed()


async def test_a_client_without_a_handshake_is_disconnected() -> None:
    async with serving(receive_seconds=0.1) as town:
        await (await town.stranger(tls=False)).until_closed()


@pytest.mark.slow
async def test_a_connection_that_asks_now_and_then_stays() -> None:
    async with serving(receive_seconds=0.5) as town:
        server, silent = await town.stranger(), await town.stranger()
        assert await server.ask() == b"200"
        await silent.until_closed()
        await server.reader.readuntil(b"\r\n\r\n")
        await server.reader.readuntil(b"}}")

        assert await server.ask() == b"200"


@pytest.mark.parametrize("tls", [True, False])
async def test_there_are_only_so_many_connections_and_the_oldest_silent_one_goes(tls: bool) -> None:
    async with serving(connections=3, receive_seconds=30) as town:
        silent = [await town.stranger(tls=tls) for _ in range(4)]

        await silent[0].until_closed()
        assert await (await town.stranger()).ask() == b"200"
        await silent[1].until_closed()
        assert not silent[3].reader.at_eof()


async def test_a_request_that_is_worked_on_is_never_cut_off_for_another() -> None:
    entered, done = asyncio.Event(), asyncio.Event()

    async def review(_: AdmissionReview) -> AdmissionResponse:
        entered.set()
        await done.wait()
        return AdmissionResponse()

    async with serving(review, connections=1, receive_seconds=30) as town:
        server = await town.stranger()
        asking = asyncio.create_task(server.ask())
        await entered.wait()
        other = await town.stranger(tls=False)
        await other.until_closed()
        done.set()

        assert await asking == b"200"
