"""What is left of a client's connections when its event loop ends right after it was closed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from konverge._internal.client.oidc import OidcCredentials, OidcProvider
from konverge.client import ClusterConfig, HttpTransport, TlsConfig
from konverge.clock import SystemClock
from konverge_resolution.network import AllowedNetworks, DnsResolver, GuardedHttp, TrustStore
from tests.cancellation_leaks import cancel_again, find_leaks
from tests.client.certificates import CertificateAuthority

pytestmark = pytest.mark.real_time

_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"


class SilentServer:
    """Begins an answer over TLS, then neither ends it nor answers a goodbye, as a server behind a dead link."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._accepted: list[ssl.SSLSocket] = []
        self.url = f"https://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(5)
        for connection in self._accepted:
            connection.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                plain, _ = self._listening.accept()
                connection = self._context.wrap_socket(plain, server_side=True)
                self._accepted.append(connection)
                if b" /mute" not in connection.recv(65536):
                    connection.sendall(_HEAD)


@pytest.fixture
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture
def silent(tmp_path: Path, authority: CertificateAuthority) -> Iterator[SilentServer]:
    pair = authority.issue()
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server = SilentServer(context)
    yield server
    server.stop()


async def leave_a_stream(transport: HttpTransport) -> None:
    async with transport.stream("GET", "/watch", connect_timeout_seconds=5) as stream:
        await anext(stream.chunks())
    await transport.close()


async def leave_a_request(transport: HttpTransport) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await transport.request("GET", "/slow", timeout_seconds=5)
    await transport.close()


async def leave_a_stream_that_has_not_begun(transport: HttpTransport) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3), transport.stream("GET", "/mute", connect_timeout_seconds=5):
            pass
    await transport.close()


async def leave_a_request_without_an_answer(transport: HttpTransport) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            await transport.request("GET", "/mute", timeout_seconds=5)
    await transport.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "leave",
    [leave_a_stream, leave_a_request, leave_a_stream_that_has_not_begun, leave_a_request_without_an_answer],
)
def test_no_connection_outlives_a_loop_that_ends_as_soon_as_the_client_is_closed(
    silent: SilentServer, authority: CertificateAuthority, leave: Callable[[HttpTransport], Coroutine[Any, Any, None]]
) -> None:
    tls = TlsConfig(authority=authority.certificate)
    assert find_leaks(leave(HttpTransport(ClusterConfig(silent.url, "the test", tls=tls)))) == []


async def ask_in_a_session(url: str, authority: bytes, *, answered: asyncio.Event) -> None:
    http = GuardedHttp(DnsResolver(), tls=TrustStore(authority.decode()), networks=AllowedNetworks(["127.0.0.0/8"]))
    async with http.stream(url, max_bytes=1 << 20) as answer:
        await anext(aiter(answer.iter_chunks()))
        answered.set()
        await asyncio.Event().wait()


async def ask_as_a_client(url: str, authority: bytes, *, answered: asyncio.Event) -> None:
    transport = HttpTransport(ClusterConfig(url, "the test", tls=TlsConfig(authority=authority)))
    try:
        async with transport.stream("GET", "/watch", connect_timeout_seconds=5) as stream:
            await anext(stream.chunks())
            answered.set()
            await asyncio.Event().wait()
    finally:
        await transport.close()


@pytest.mark.slow
def test_no_connection_outlives_a_refresh_of_a_token_that_is_cancelled(
    silent: SilentServer, authority: CertificateAuthority
) -> None:
    async def give_up() -> None:
        provider = OidcProvider("ann", silent.url, "konverge", refresh_token="r0", authority=authority.certificate)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await OidcCredentials(provider, SystemClock()).get_identity()

    assert find_leaks(give_up()) == []


@pytest.mark.slow
@pytest.mark.parametrize("ask", [ask_in_a_session, ask_as_a_client])
def test_no_connection_outlives_one_who_is_cancelled_again_while_closing(
    silent: SilentServer, authority: CertificateAuthority, ask: Callable[..., Coroutine[Any, Any, None]]
) -> None:
    async def cancelled_twice() -> None:
        answered = asyncio.Event()
        asking = asyncio.create_task(ask(silent.url, authority.certificate, answered=answered))
        async with asyncio.timeout(5):
            await answered.wait()
        await cancel_again(asking)
        await asyncio.wait([asking])

    assert find_leaks(cancelled_twice()) == []
