"""Connections that requests share, one after the other, and requests through a proxy, which have others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest
from aiohttp import web
from yarl import URL

from konverge.client import ClusterConfig, HttpTransport, Tls
from konverge.client.connections import Connections, NotReachedError
from konverge.client.credentials import Identity, Token
from konverge.errors import ConnectionFailedError, NotConnectedError
from tests.client.certificates import Authority
from tests.client.servers import Servers

pytestmark = pytest.mark.anyio

AUTHORITY = Authority()
SECONDS = 5.0


@pytest.fixture
def anyio_backend() -> str:
    """Real time: there are sockets."""
    return "asyncio"


@dataclass
class Seen:
    """A server that notes which connection each request came over."""

    ports: list[int] = field(default_factory=list)
    waiting: int = 0
    most_waiting: int = 0
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.ports.append(request.transport.get_extra_info("peername")[1])
        if request.path == "/slow":
            self.waiting += 1
            self.most_waiting = max(self.waiting, self.most_waiting)
            await self.go_on.wait()
            self.waiting -= 1
        answer = web.Response(text=request.raw_path)
        if request.path == "/last":
            answer.force_close()
        return answer


@dataclass
class Changing:
    """A user whose certificate is another one for each request."""

    identities: list[Identity]
    description: str = "the certificate"

    async def identity(self) -> Identity:
        return self.identities.pop(0)

    def refused(self, identity: Identity) -> bool:
        return False

    def separate(self) -> Changing:
        return self


def config(server: str, **fields: object) -> ClusterConfig:
    return replace(ClusterConfig(server, "the test", tls=Tls(AUTHORITY.certificate)), **fields)  # type: ignore[arg-type]


async def ask(transport: HttpTransport, path: str = "/api") -> str:
    return (await transport.request("GET", path, timeout_seconds=SECONDS)).body.decode()


async def test_one_request_after_the_other_goes_over_the_same_connection(servers: Servers) -> None:
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer, tls=AUTHORITY.issue())))
    for _ in range(3):
        await ask(transport)
    await transport.close()

    assert len(set(seen.ports)) == 1


async def test_a_connection_that_the_server_ends_is_not_used_again(servers: Servers) -> None:
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer)))
    await ask(transport, "/last")
    await ask(transport)
    await transport.close()

    assert len(set(seen.ports)) == 2


async def test_a_request_that_was_given_up_takes_its_connection_with_it(servers: Servers) -> None:
    """Its answer would be taken for that of the next one."""
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer)))
    with pytest.raises(ConnectionFailedError, match=r"did not answer within 0\.05 s"):
        await transport.request("GET", "/slow", timeout_seconds=0.05)
    seen.go_on.set()
    answer = await ask(transport, "/api")
    await transport.close()

    assert answer == "/api"
    assert len(set(seen.ports)) == 2


async def test_another_certificate_has_another_connection(servers: Servers) -> None:
    seen = Seen()
    url = await servers.start(seen.answer, tls=AUTHORITY.issue(), client_authority=AUTHORITY)
    ann, bob = (Identity(certificate=own.certificate, key=own.key) for own in (AUTHORITY.issue(), AUTHORITY.issue()))
    transport = HttpTransport(config(url, credentials=Changing([ann, ann, bob])))
    for _ in range(3):
        await ask(transport)
    await transport.close()

    first, second, third = seen.ports
    assert first == second
    assert third != first


async def test_more_requests_than_connections_wait_for_their_turn(servers: Servers) -> None:
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer)))
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(ask(transport, "/slow")) for _ in range(70)]
        while seen.waiting < 64:
            await asyncio.wait(asked, timeout=0.01)
        seen.go_on.set()
    await transport.close()

    assert [task.result() for task in asked] == ["/slow"] * 70
    assert seen.most_waiting == 64


async def test_a_connection_that_was_idle_for_long_is_not_trusted(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("konverge.client.connections._IDLE_SECONDS", 0.0)
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer)))
    await ask(transport)
    await ask(transport)
    await transport.close()

    assert len(set(seen.ports)) == 2


async def test_what_cannot_be_written_as_http_is_not_sent(servers: Servers) -> None:
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer)))
    for value in ("a\r\nx-other: b", "a\nb", "a\0b", "\ud800"):
        with pytest.raises(ConnectionFailedError, match="cannot be sent") as raised:
            await transport.request("GET", "/api", headers={"x-one": value}, timeout_seconds=SECONDS)
        assert value not in str(raised.value)
    await transport.close()

    assert seen.ports == []


async def test_a_server_that_speaks_another_language_is_told() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"220 mail.example ESMTP\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    transport = HttpTransport(config(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))
    with pytest.raises(ConnectionFailedError, match="of no use: it does not begin as one") as raised:
        await ask(transport)
    await transport.close()
    server.close()

    assert not isinstance(raised.value, NotConnectedError)


async def test_closing_fails_what_is_under_way(servers: Servers) -> None:
    seen = Seen()
    transport = HttpTransport(config(await servers.start(seen.answer)))
    asked = asyncio.create_task(ask(transport, "/slow"))
    while not seen.waiting:
        await asyncio.wait([asked], timeout=0.01)
    await transport.close()
    with pytest.raises(ConnectionFailedError):
        await asked
    seen.go_on.set()


async def test_what_comes_after_closing_is_not_sent(servers: Servers) -> None:
    seen = Seen()
    url = URL(await servers.start(seen.answer))
    connections = Connections(
        url.host or "", url.port or 0, limit=1, server_name="", max_body_bytes=99, prepare=lambda found: None
    )
    await connections.close()
    with pytest.raises(NotReachedError):
        await connections.request("GET", "/api", (), None, context=None, not_after=float("inf"))

    assert seen.ports == []


async def test_a_request_through_a_proxy_arrives(servers: Servers) -> None:
    seen = Seen()
    proxy = await servers.start(seen.answer)
    transport = HttpTransport(config("http://api.example", proxy_url=proxy, credentials=Token("t")))
    answer = await transport.request("PATCH", "/api", body=b"{}", timeout_seconds=SECONDS)
    await transport.close()

    assert answer.status == 200
    assert answer.body == b"http://api.example/api"
