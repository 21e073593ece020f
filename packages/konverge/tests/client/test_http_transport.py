"""The transport over HTTP against servers on loopback: requests, responses and error messages."""

from __future__ import annotations

import asyncio
import socket
import traceback
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from konverge._internal.client.credentials import BearerToken, TokenFile
from konverge.client import Client, ClusterConfig, HttpTransport, TlsConfig
from konverge.clock import SystemClock
from konverge.errors import (
    ConfigurationError,
    ConnectionFailedError,
    KonvergeError,
    NotConnectedError,
    UnauthorizedError,
    UntrustedServerError,
)
from konverge.kube import GroupVersionKind, ObjectKey
from tests.client.certificates import NOW, CertificateAuthority, KeyPair
from tests.client.scripted_transport import DISCOVERY
from tests.client.servers import Handler, Servers

pytestmark = pytest.mark.anyio

AUTHORITY = CertificateAuthority()
SERVER = AUTHORITY.issue("server")
SECONDS = 5.0


@pytest.fixture
def anyio_backend() -> str:
    """Use real time: there are sockets."""
    return "asyncio"


async def fine(request: web.Request) -> web.Response:
    return web.Response(text="fine")


async def echo(request: web.Request) -> web.Response:
    """Return the request as the response."""
    return web.json_response(
        {
            "method": request.method,
            "path": request.raw_path,
            "headers": [f"{name}: {value}" for name, value in request.headers.items()],
            "body": (await request.read()).decode(),
        }
    )


def config(server: str, **fields: object) -> ClusterConfig:
    tls = TlsConfig(authority=AUTHORITY.certificate)
    return replace(ClusterConfig(server, 'context "here" of config', tls=tls), **fields)  # type: ignore[arg-type]  # each field has its own type


async def ask(found: ClusterConfig, path: str = "/api") -> str:
    transport = HttpTransport(found)
    try:
        return (await transport.request("GET", path, timeout_seconds=SECONDS)).body.decode()
    finally:
        await transport.close()


async def failing(found: ClusterConfig, seconds: float = SECONDS) -> KonvergeError:
    """Return the error of a request and of a stream, which have the same message."""
    transport = HttpTransport(found)
    try:
        with pytest.raises(KonvergeError) as of_request:
            await transport.request("GET", "/api", timeout_seconds=seconds)
        with pytest.raises(KonvergeError) as of_stream:
            async with transport.stream("GET", "/api", connect_timeout_seconds=seconds) as stream:
                await anext(aiter(stream.chunks()))
    finally:
        await transport.close()
    assert str(of_request.value) == str(of_stream.value)
    assert type(of_request.value) is type(of_stream.value)
    assert "\n" not in str(of_request.value)
    return of_request.value


# Requests and responses.


async def test_a_request_arrives_as_it_was_meant(servers: Servers) -> None:
    url = await servers.start(echo)
    transport = HttpTransport(
        config(f"{url}/base", impersonation=(("Impersonate-Group", "a"), ("Impersonate-Group", "b")))
    )
    answer = await transport.request(
        "PATCH",
        "/apis/x/system:node",
        query={"labelSelector": "a in (b, c),d!=e", "continue": "a+b/c="},
        headers={"content-type": "application/json"},
        body=b"{}",
        timeout_seconds=SECONDS,
    )
    await transport.close()

    text = answer.body.decode()
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/json")
    assert '"PATCH"' in text
    assert "/base/apis/x/system:node?labelSelector=a+in+(b,+c),d!%3De&continue=a%2Bb/c%3D" in text
    assert "Accept-Encoding: identity" in text
    assert "Impersonate-Group: a" in text
    assert "Impersonate-Group: b" in text
    assert "cookie" not in text.lower()


async def test_a_redirect_is_not_followed(servers: Servers) -> None:
    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://elsewhere.example")

    transport = HttpTransport(config(await servers.start(redirect), credentials=BearerToken("t")))
    answer = await transport.request("GET", "/api", timeout_seconds=SECONDS)
    await transport.close()

    assert answer.status == 302


async def test_a_stream_gives_each_chunk_as_it_comes(servers: Servers) -> None:
    go_on = asyncio.Event()

    async def trickle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await go_on.wait()
        await response.write(b"second")
        return response

    transport = HttpTransport(config(await servers.start(trickle)))
    async with asyncio.timeout(SECONDS):
        async with transport.stream("GET", "/api", connect_timeout_seconds=SECONDS) as stream:
            chunks = aiter(stream.chunks())
            first = await anext(chunks)
            go_on.set()
            rest = [chunk async for chunk in chunks]
    await transport.close()

    assert (first, rest) == (b"first", [b"second"])


async def test_many_streams_leave_room_for_requests(servers: Servers) -> None:
    async def hang(request: web.Request) -> web.StreamResponse:
        if request.path == "/watch":
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"x")
            await asyncio.Event().wait()
        return await fine(request)

    transport = HttpTransport(config(await servers.start(hang)))
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        opened = [asyncio.Event() for _ in range(70)]

        async def watch(ready: asyncio.Event) -> None:
            async with transport.stream("GET", "/watch", connect_timeout_seconds=SECONDS):
                ready.set()
                await asyncio.Event().wait()

        watches = [tasks.create_task(watch(ready)) for ready in opened]
        for ready in opened:
            await ready.wait()
        answer = await transport.request("GET", "/api", timeout_seconds=SECONDS)
        for task in watches:
            task.cancel()
    await transport.close()

    assert answer.body == b"fine"


# TLS.


async def test_a_server_of_the_right_authority_is_trusted(servers: Servers) -> None:
    assert await ask(config(await servers.start(fine, tls=SERVER))) == "fine"


async def test_a_server_may_go_by_another_name(servers: Servers) -> None:
    url = await servers.start(fine, tls=AUTHORITY.issue(address="10.9.9.9", host="other.example"))

    assert await ask(config(url, tls=TlsConfig(AUTHORITY.certificate, server_name="other.example"))) == "fine"


async def test_any_server_is_believed_when_that_is_asked_for(servers: Servers) -> None:
    url = await servers.start(fine, tls=CertificateAuthority("another").issue())

    assert await ask(config(url, tls=TlsConfig(insecure=True))) == "fine"


async def test_an_own_certificate_is_shown(servers: Servers) -> None:
    url = await servers.start(fine, tls=SERVER, client_authority=AUTHORITY)
    own = AUTHORITY.issue("ann")

    assert await ask(config(url, tls=TlsConfig(AUTHORITY.certificate, own.certificate, own.key))) == "fine"


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (
            AUTHORITY.issue(not_after=NOW - timedelta(hours=1)),
            "it has expired. Renew it, or correct this machine's clock",
        ),
        (AUTHORITY.issue(not_before=NOW + timedelta(hours=1)), "it is not valid yet. Correct this machine's clock"),
        (
            CertificateAuthority("another").issue(),
            "it is not signed by the certificate-authority. Is this the right cluster",
        ),
        (AUTHORITY.issue(address="10.9.9.9"), "it is not valid for 127.0.0.1. Check the address, or set tls-server"),
    ],
    ids=["expired", "not yet", "another authority", "another name"],
)
async def test_why_a_server_is_not_trusted_is_told(servers: Servers, certificate: KeyPair, words: str) -> None:
    url = await servers.start(fine, tls=certificate)
    error = await failing(config(url))

    assert isinstance(error, UntrustedServerError)
    assert str(error).startswith(f'cannot trust the certificate of the API server {url} (context "here" of config): ')
    assert words in str(error)


EXPIRED = AUTHORITY.issue(not_after=NOW - timedelta(hours=1))


async def test_an_expired_own_certificate_is_told_when_the_server_only_hangs_up(servers: Servers) -> None:
    url = await servers.start(fine, tls=SERVER, client_authority=AUTHORITY)
    error = await failing(config(url, tls=TlsConfig(AUTHORITY.certificate, EXPIRED.certificate, EXPIRED.key)))

    assert isinstance(error, UntrustedServerError)
    assert f"{url} closed the connection" in str(error)
    assert "The client certificate expired at " in str(error)


async def test_a_server_without_tls_is_told(servers: Servers) -> None:
    url = (await servers.start(fine)).replace("http:", "https:")

    assert "does not speak TLS" in str(await failing(config(url)))


@pytest.mark.parametrize(
    ("tls", "words"),
    [
        (TlsConfig(authority=b"nonsense"), "the certificate-authority of .* is not PEM"),
        (TlsConfig(authority=b"\xff"), "the certificate-authority of .* is not PEM"),
        (TlsConfig(certificate=b"nonsense", key=b"nonsense"), "they are not PEM"),
        (TlsConfig(certificate=SERVER.certificate, key=AUTHORITY.issue().key), "they do not belong together"),
    ],
    ids=["no certificate", "no text", "no key", "another key"],
)
async def test_certificates_that_cannot_be_used_are_told_at_once(tls: TlsConfig, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        HttpTransport(config("https://127.0.0.1:1", tls=tls))


# Connections.


@pytest.fixture
def closed_port() -> int:
    """A port without a listening server."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


async def test_a_server_that_is_not_there_is_told(closed_port: int) -> None:
    error = await failing(config(f"http://127.0.0.1:{closed_port}"))

    assert isinstance(error, NotConnectedError)
    assert str(error) == (
        f'cannot reach the API server http://127.0.0.1:{closed_port}: connection refused (context "here" of config). '
        "Is the cluster running, and is this its address?"
    )


async def test_a_host_without_an_address_is_told() -> None:
    error = await failing(config("http://nowhere.invalid"))

    assert isinstance(error, NotConnectedError)
    assert "cannot find the host nowhere.invalid" in str(error)


async def test_a_proxy_that_is_not_there_is_told_without_its_password(closed_port: int) -> None:
    proxy = f"http://ann:s3cret@127.0.0.1:{closed_port}"
    error = await failing(config("http://api.example", proxy_url=proxy))

    assert isinstance(error, NotConnectedError)
    assert f"cannot reach the proxy http://127.0.0.1:{closed_port} on the way to http://api.example" in str(error)
    assert "s3cret" not in str(error)


async def test_a_proxy_that_refuses_is_told(servers: Servers) -> None:
    no_proxy = await servers.start(fine)  # but a web server, which knows no CONNECT
    error = await failing(config("https://api.example", proxy_url=no_proxy))

    assert isinstance(error, NotConnectedError)
    assert "did not connect to https://api.example: it answered with HTTP status 404" in str(error)


async def test_a_server_that_does_not_answer_in_time_is_told(servers: Servers) -> None:
    async def hang(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    error = await failing(config(await servers.start(hang)), seconds=0.05)

    assert type(error) is ConnectionFailedError
    assert "GET /api: the API server" in str(error)
    assert "did not answer within 0.05 s" in str(error)


async def test_a_connection_that_breaks_is_told(servers: Servers) -> None:
    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    error = await failing(config(await servers.start(hang_up)))

    assert type(error) is ConnectionFailedError
    assert "GET /api: the connection to the API server" in str(error)


@pytest.mark.parametrize(
    "answer",
    [
        b"s3cret-of-somebody\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ns3cret-of-somebody\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\ns3cret-of-somebody\r\n",
    ],
    ids=["status line", "header", "chunk"],
)
async def test_what_is_no_http_is_not_quoted(answer: bytes) -> None:
    """The bytes may belong to another response and contain a Secret."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        error = await failing(config(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))

    assert "GET /api: the connection to the API server" in str(error)
    assert "s3cret" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("is_kept", [False, True], ids=["a new connection", "a connection that was kept"])
async def test_a_connection_that_breaks_under_a_request_has_carried_it_once(
    servers: Servers, method: str, is_kept: bool
) -> None:
    """The HTTP library alone would repeat GET, PUT and DELETE, even if the server has acted."""
    arrived: list[str] = []

    async def act_and_hang_up(request: web.Request) -> web.Response:
        if request.path == "/first":
            return await fine(request)
        arrived.append(request.method)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    transport = HttpTransport(config(await servers.start(act_and_hang_up)))
    if is_kept:
        await transport.request("GET", "/first", timeout_seconds=SECONDS)
    with pytest.raises(ConnectionFailedError, match=f"{method} /api: the connection to the API server .* broke") as no:
        await transport.request(method, "/api", timeout_seconds=SECONDS)
    await transport.close()

    assert arrived == [method]
    assert not isinstance(no.value, NotConnectedError)


async def test_a_header_that_comes_several_times_is_joined(servers: Servers) -> None:
    async def warn(request: web.Request) -> web.Response:
        answer = web.Response(text="fine")
        for text in ("a", "b"):
            answer.headers.add("Warning", f'299 - "{text}"')
        return answer

    transport = HttpTransport(config(await servers.start(warn)))
    answer = await transport.request("GET", "/api", timeout_seconds=SECONDS)
    await transport.close()

    assert answer.headers["warning"] == '299 - "a", 299 - "b"'


@pytest.mark.slow
async def test_both_attempts_with_refused_credentials_share_one_deadline(servers: Servers, tmp_path: Path) -> None:
    async def refuse_late(request: web.Request) -> web.Response:
        await SystemClock().sleep(0.3)
        return web.Response(status=401)

    file = tmp_path / "token"
    rewrite(file, "first")
    found = config(await servers.start(refuse_late), credentials=TokenFile(file, SystemClock()))
    transport = HttpTransport(found)
    with pytest.raises(ConnectionFailedError, match="did not answer within 0.5 s"):
        await transport.request("POST", "/api", timeout_seconds=0.5)
    await transport.close()


async def test_a_transport_that_was_closed_stays_closed(servers: Servers) -> None:
    transport = HttpTransport(config(await servers.start(fine)))
    await transport.close()

    with pytest.raises(NotConnectedError, match="has been closed"):
        await transport.request("GET", "/api", timeout_seconds=SECONDS)


async def test_a_client_with_its_own_connections_works_in_another_thread(servers: Servers) -> None:
    peers: list[object] = []

    async def one_object(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.json_response(DISCOVERY.get(request.path, {"metadata": {"name": "web"}}))

    config_map, key = GroupVersionKind("", "v1", "ConfigMap"), ObjectKey("default", "web")
    async with Client(HttpTransport(config(await servers.start(one_object)))) as client:
        await client.get(config_map, key)
        other = client.with_own_connections()

        async def ask_elsewhere() -> None:
            async with other:
                await other.get(config_map, key)

        await asyncio.to_thread(asyncio.run, ask_elsewhere())
        await client.get(config_map, key)

    assert len(peers) == 5  # two are discovery, which both know of
    assert len(set(peers)) == 2


# Credentials.


def guard(token: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        if request.headers.get("authorization") == f"Bearer {token}":
            return web.Response(text="fine")
        return web.json_response({"kind": "Status", "message": "Unauthorized", "code": 401}, status=401)

    return handler


async def test_a_refused_token_is_told_by_where_it_came_from(servers: Servers) -> None:
    url = await servers.start(guard("right"))
    error = await failing(config(url, credentials=BearerToken("s3cret", 'the token of user "ann"')))

    assert isinstance(error, UnauthorizedError)
    assert str(error) == (
        f'the API server {url} does not accept the token of user "ann" (context "here" of config): Unauthorized. '
        "They may have expired, or be those of another cluster"
    )


async def test_an_expired_own_certificate_is_told_when_the_server_only_says_401(servers: Servers) -> None:
    url = await servers.start(guard("right"), tls=SERVER)
    error = await failing(config(url, tls=TlsConfig(AUTHORITY.certificate, EXPIRED.certificate, EXPIRED.key)))

    assert isinstance(error, UnauthorizedError)
    assert "The client certificate expired at " in str(error)


async def test_a_token_that_was_renewed_in_its_file_is_sent_after_a_refusal(servers: Servers, tmp_path: Path) -> None:
    file = tmp_path / "token"
    rewrite(file, "first")
    transport = HttpTransport(
        config(await servers.start(guard("second")), credentials=TokenFile(file, SystemClock(), token=""))
    )
    with pytest.raises(UnauthorizedError):
        await transport.request("GET", "/api", timeout_seconds=SECONDS)
    rewrite(file, "second")
    answer = await transport.request("GET", "/api", timeout_seconds=SECONDS)
    async with transport.stream("GET", "/api", connect_timeout_seconds=SECONDS) as stream:
        streamed = await stream.body()
    await transport.close()

    assert (answer.body, streamed) == (b"fine", b"fine")


def rewrite(file: Path, content: str) -> None:
    file.write_text(content)
