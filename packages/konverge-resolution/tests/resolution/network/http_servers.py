"""What stands around HTTP in tests: names, servers that behave well or badly, a proxy."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from konverge.clock import SystemClock
from konverge_resolution.network import AllowedNetworks, GuardedHttp, Proxy, TrustStore
from tests.client.certificates import CertificateAuthority

RequestHandlerFunction = Callable[[web.Request], Awaitable[web.StreamResponse]]
ConnectionHandler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

LOOPBACK = AllowedNetworks(["127.0.0.0/8"])


class FakeDns:
    """Names of a test: each has a list of answers, of which the last one stays."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[str]]] | None = None) -> None:
        self._answers = {name: list(each) for name, each in (answers or {}).items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class HangingDns:
    """In the place of what asks the machine for a name, in a thread: names that begin with ``hangs`` wait for `answer`.

    Args:
        address: What every name has.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._answers = threading.Event()
        self._hanging: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        if host.startswith("hangs"):
            self._hanging.append(host)
            self._answers.wait(10)
        return [self._address]

    async def wait_for_lookups(self, count: int) -> None:
        """Return when so many wait, each in a thread."""
        async with asyncio.timeout(5):
            while len(self._hanging) < count:
                await SystemClock().sleep(0.001)

    def release(self) -> None:
        """Let all of them go on."""
        self._answers.set()


def build_guarded_http(
    names: FakeDns | None = None,
    *,
    networks: AllowedNetworks = LOOPBACK,
    authorities: str = "",
    proxy: Proxy | None = None,
) -> GuardedHttp:
    """The client under test; by itself it may reach loopback."""
    return GuardedHttp(names or FakeDns(), tls=TrustStore(authorities), networks=networks, proxy=proxy)


class RecordingHandler:
    """Answers, and notes what it was asked: method, path as sent, headers, peer."""

    def __init__(self, body: bytes = b"here", *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self._body, self._status, self._headers = body, status, headers
        self.requests: list[web.BaseRequest] = []
        self.peers: set[Any] = set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=self._body, status=self._status, headers=self._headers)


def redirect_to(target: str, status: int = 302) -> RequestHandlerFunction:
    """Redirects."""

    async def serve(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": target})

    return serve


@asynccontextmanager
async def serve_site(served: RequestHandlerFunction, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """An HTTP server that gives every request to one function; its URL without a path."""

    async def serve(request: web.Request) -> web.StreamResponse:  # aiohttp takes only functions
        return await served(request)

    app = web.Application(client_max_size=8 << 20)
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.0, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def route_paths(**served: RequestHandlerFunction) -> RequestHandlerFunction:
    """``a=handler`` serves ``/a``."""

    async def serve(request: web.Request) -> web.StreamResponse:
        return await served[request.path.strip("/")](request)

    return serve


@asynccontextmanager
async def serve_connections(talk: ConnectionHandler) -> AsyncIterator[int]:
    """A server that talks as it likes; its port. When the block ends, all of its connections must be gone."""
    tasks: set[asyncio.Task[Any]] = set()

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    made = await asyncio.start_server(handle_connection, "127.0.0.1", 0)
    try:
        yield made.sockets[0].getsockname()[1]
    finally:
        made.close()
        if tasks:
            # Everybody who hangs waits for the client to go: it has gone, or this fails.
            _, left = await asyncio.wait(tasks, timeout=5)
            assert not left, "a connection was left open"


def respond_with_bytes(text: bytes) -> ConnectionHandler:
    """One answer to every request, whatever it is, and then the end."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        await writer.drain()

    return talk


async def never_respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes what comes, and never answers; until the other side hangs up."""
    while await reader.read(65536):
        pass


class ForwardProxy:
    """A proxy: CONNECT and whole URLs; it notes the first lines and what it is told of users."""

    def __init__(self, hosts: Mapping[str, int], *, refuses: int = 0) -> None:
        self._hosts = hosts
        self._refuses = refuses
        self.asked: list[str] = []
        self.users: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *headers = head.split("\r\n")
        self.asked.append(first)
        self.users += [each.partition(": ")[2] for each in headers if each.lower().startswith("proxy-auth")]
        if self._refuses:
            writer.write(f"HTTP/1.1 {self._refuses} No\r\nContent-Length: 0\r\n\r\n".encode())
            return await writer.drain()
        method, target, _ = first.split(" ")
        name = target.removeprefix("http://").partition("/")[0].partition(":")[0]
        there, back = await asyncio.open_connection("127.0.0.1", self._hosts[name])
        try:
            if method == "CONNECT":
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                plain = [each for each in headers if not each.lower().startswith("proxy-")]
                back.write("\r\n".join([first, *plain]).encode())
            await asyncio.wait(
                [asyncio.create_task(_pass_on(reader, back)), asyncio.create_task(_pass_on(there, writer))],
            )
        finally:
            back.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


def certificate(folder: Path, host: str = "tls.example") -> tuple[str, ssl.SSLContext]:
    """The authority, in PEM, that signed a certificate for a host and for 127.0.0.1, and the context of who has it."""
    authority = CertificateAuthority()
    pair = authority.issue(host, host=host)
    (folder / "crt").write_bytes(pair.certificate)
    (folder / "key").write_bytes(pair.key)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(folder / "crt", folder / "key")
    return authority.certificate.decode(), served
