"""The servers, over real connections."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from konverge._internal.runtime import KeyEvent
from konverge._internal.runtime.observability import (
    HealthCheck,
    ObservabilityOptions,
    ObservabilityServers,
    RuntimeSources,
)
from konverge._internal.runtime.observability.connection_log import build_connection_logger
from konverge._internal.runtime.observability.listen_address import ListenAddress, parse_listen_address
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from tests.runtime.observability import fake_sources
from tests.runtime.observability.exposition_parsing import parse_exposition

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

TOKEN = "a-token-that-is-long-enough"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
EVIL = ObjectKey("default", "<script>alert(1)</script>")


def options(**changed: Any) -> ObservabilityOptions:
    return ObservabilityOptions(**{"metrics_address": "127.0.0.1:0", "probe_address": "127.0.0.1:0", **changed})


@asynccontextmanager
async def running_servers(
    given: ObservabilityOptions, sources: RuntimeSources | None = None
) -> AsyncIterator[ObservabilityServers]:
    async with ObservabilityServers(given, sources or RuntimeSources()) as serving:
        yield serving


async def get(
    port: int | None, path: str, headers: dict[str, str] | None = None, **more: Any
) -> tuple[int, str, dict[str, str]]:
    scheme = "https" if "ssl" in more else "http"
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.get(f"{scheme}://127.0.0.1:{port}{path}", headers=headers, **more) as answer,
    ):
        body = await answer.read()
        if answer.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        return answer.status, body.decode(), {name.lower(): value for name, value in answer.headers.items()}


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens"
    file.write_text(TOKEN)
    return file


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:8080", ListenAddress("127.0.0.1", 8080)),
        (":8080", ListenAddress("", 8080)),
        ("8080", ListenAddress("127.0.0.1", 8080)),
        ("[::1]:0", ListenAddress("::1", 0)),
        ("operator.svc:9", ListenAddress("operator.svc", 9)),
        ("0", None),
        ("", None),
    ],
)
async def test_addresses_are_those_of_operators_flags(text: str, expected: ListenAddress | None) -> None:
    assert parse_listen_address(text) == expected


@pytest.mark.parametrize("text", ["localhost", ":", ":99999", "::1:80", "a b:80", "http://x:80", ":80\n", "[::1:80"])
async def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="host:port"):
        ObservabilityOptions(metrics_address=text)


async def test_metrics_are_scraped_as_text_that_prometheus_reads() -> None:
    async with running_servers(
        options(), RuntimeSources(controllers=lambda: [fake_sources.FakeController()])
    ) as serving:
        status, body, headers = await get(serving.metrics_port, "/metrics")

    assert status == 200
    assert headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "controller_runtime_active_workers" in parse_exposition(body)


async def test_a_scraper_that_takes_gzip_gets_gzip() -> None:
    async with running_servers(options()) as serving:
        _, body, headers = await get(serving.metrics_port, "/metrics", {"Accept-Encoding": "gzip"})

    assert headers["content-encoding"] == "gzip"
    assert "konverge_build_info" in parse_exposition(body)


async def test_probes_answer_from_the_first_moment_on() -> None:
    started = False
    async with running_servers(options(), RuntimeSources(is_started=lambda: started)) as serving:
        live = await get(serving.probe_port, "/livez")
        healthy = await get(serving.probe_port, "/healthz")
        ready = await get(serving.probe_port, "/readyz")
        started = True
        ready_later = await get(serving.probe_port, "/readyz?verbose")

    assert live[:2] == healthy[:2] == (200, "ok")
    assert ready[0] == 500
    assert "[-]started failed: the owners are not listed yet\n" in ready[1]
    assert ready_later[0] == 200
    assert ready_later[1].endswith("[+]shutdown ok\nreadyz check passed\n")


async def test_one_check_has_a_path_and_may_be_excluded() -> None:
    async with running_servers(options(), RuntimeSources(is_started=lambda: False)) as serving:
        alone = await get(serving.probe_port, "/readyz/started")
        other = await get(serving.probe_port, "/readyz/ping")
        excluded = await get(serving.probe_port, "/readyz?exclude=started&exclude=nonsense&verbose=1")
        unknown = await get(serving.probe_port, "/readyz/nonsense")

    assert alone[:2] == (500, "internal server error: the owners are not listed yet\n")
    assert other[:2] == (200, "ok")
    assert excluded[0] == 200
    assert "[+]started excluded: ok\n" in excluded[1]
    assert 'no matches for "nonsense"' in excluded[1]
    assert unknown[0] == 404


def _raises() -> str | None:
    raise RuntimeError("password=hunter2")


async def _hangs() -> str | None:
    await asyncio.Event().wait()
    return None


@pytest.mark.parametrize("find", [_raises, _hangs])
async def test_a_broken_check_fails_alone_and_never_takes_the_endpoint_down(
    find: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("konverge._internal.runtime.observability.servers._CHECK_SECONDS", 0.05)
    async with running_servers(options(ready_checks=[HealthCheck("mine", find)])) as serving:
        first = await get(serving.probe_port, "/readyz")
        second = await get(serving.probe_port, "/readyz")
        without = await get(serving.probe_port, "/readyz?exclude=mine")
        live = await get(serving.probe_port, "/livez")

    assert first[0] == second[0] == 500
    assert "[+]informers-fresh ok" in first[1]
    assert "[-]mine failed: " in first[1]
    assert "hunter2" not in first[1]
    assert without[0] == live[0] == 200


def _no_list() -> Any:
    raise RuntimeError("password=hunter2")


async def test_broken_sources_never_take_an_endpoint_down(tokens: Path) -> None:
    sources = RuntimeSources(controllers=_no_list, informers=_no_list, leases=_no_list, tasks=_no_list)
    async with running_servers(options(debug=True, token_file=tokens), sources) as serving:
        scrape = await get(serving.metrics_port, "/metrics", BEARER)
        ready = await get(serving.probe_port, "/readyz")
        live = await get(serving.probe_port, "/livez")
        page = await get(serving.metrics_port, "/debug/", BEARER)

    assert scrape[0] == page[0] == 200
    assert "the check raised RuntimeError" in ready[1]
    assert live[0] == 500
    assert "hunter2" not in scrape[1] + ready[1] + live[1] + page[1]


@pytest.mark.parametrize(
    ("header", "status"),
    [(b"Authorization: Basic \xff", b"401"), (b"X: " + b"y" * 100_000, b"400")],
    ids=["no ASCII", "too long"],
)
async def test_a_header_that_cannot_be_used_is_refused_and_fills_no_log(
    header: bytes, status: bytes, tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_servers(options(token_file=tokens)) as serving:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.metrics_port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
        async with asyncio.timeout(10):
            answer = await reader.readline()
        writer.close()

    assert answer.split()[1] == status
    assert caplog.records == []


def test_what_is_no_clients_mistake_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    build_connection_logger("tests.connections").error("broken", exc_info=RuntimeError("a bug"))

    assert caplog.messages == ["broken"]


async def test_nothing_but_reading_is_served() -> None:
    async with (
        running_servers(options()) as serving,
        aiohttp.ClientSession(f"http://127.0.0.1:{serving.metrics_port}") as session,
    ):
        async with session.post("/metrics", data=b"x" * 100_000) as posted:
            assert posted.status == 405
        async with session.get("/debug/") as debug:
            assert debug.status == 404
        async with session.head("/metrics") as head:
            assert head.status == 200


async def test_metrics_and_debug_page_are_behind_the_token(tokens: Path) -> None:
    async with running_servers(options(debug=True, token_file=tokens)) as serving:
        for path in ("/metrics", "/debug/", "/debug/story?controller=webapp"):
            status, _, headers = await get(serving.metrics_port, path)
            assert status == 401
            assert headers["www-authenticate"].startswith("Basic")
        assert (await get(serving.metrics_port, "/metrics", BEARER))[0] == 200
        browser = {"Authorization": aiohttp.encode_basic_auth("anybody", TOKEN)}
        assert (await get(serving.metrics_port, "/debug/", browser))[0] == 200
        assert (await get(serving.probe_port, "/readyz"))[0] == 200


async def test_the_debug_page_needs_authentication_and_a_server() -> None:
    with pytest.raises(ConfigurationError, match="debug: expected authentication"):
        ObservabilityOptions(debug=True)
    with pytest.raises(ConfigurationError, match="switched off"):
        ObservabilityOptions(debug=True, metrics_address="0", authenticate_with_cluster=True)


async def test_the_debug_page_shows_the_operator_and_escapes_every_name(tokens: Path) -> None:
    controller = fake_sources.FakeController(running={EVIL: 12.5}, queue=fake_sources.FakeQueue({0: 1, -100: 4}))
    now = SystemClock().monotonic()
    controller.queue.moments[EVIL] = (KeyEvent(now - 2, "added", "<b>why</b>"), KeyEvent(now - 1, "started"))
    sources = RuntimeSources(
        controllers=lambda: [controller],
        informers=lambda: [fake_sources.FakeInformer()],
        leases=lambda: {"webapp-0": True},
    )
    async with running_servers(options(debug=True, token_file=tokens), sources) as serving:
        status, page, headers = await get(serving.metrics_port, "/debug/", BEARER)
        data = await get(serving.metrics_port, "/debug/?format=json", BEARER)
        query = "controller=webapp&namespace=default&name=%3Cscript%3Ealert(1)%3C/script%3E"
        history = await get(serving.metrics_port, f"/debug/story?{query}", BEARER)
        unknown = await get(serving.metrics_port, "/debug/story?controller=absent", BEARER)

    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "<script" not in page + history[1]
    assert "<b>" not in history[1]
    assert "&lt;script&gt;" in page
    assert "0: 1, -100: 4" in page
    assert "webapp-0" in page
    assert '"seconds": 12.5' in data[1]
    assert "&lt;b&gt;why" in history[1]
    assert unknown[0] == 404


async def test_the_task_dump_shows_the_whole_chain_of_awaits_and_no_values(tokens: Path) -> None:
    async def inner(secret: str) -> None:
        await asyncio.Event().wait()

    async def outer() -> None:
        await inner("hunter2")

    task = asyncio.create_task(outer(), name="reconcile webapp default/web")
    async with running_servers(options(debug=True, token_file=tokens)) as serving:
        _, page, _ = await get(serving.metrics_port, "/debug/", BEARER)
    task.cancel()
    await asyncio.wait([task])

    _, _, dump = page.partition("reconcile webapp default/web")
    assert dump.index(" outer") < dump.index(" inner") < dump.index(" wait")
    assert "observability/test_servers.py:" in dump
    assert "hunter2" not in page


async def test_many_idle_connections_do_not_keep_a_probe_out() -> None:
    async with running_servers(options()) as serving:
        assert serving.probe_port is not None
        idle = [await asyncio.open_connection("127.0.0.1", serving.probe_port) for _ in range(150)]
        assert (await get(serving.probe_port, "/livez"))[0] == 200
        assert await asyncio.wait_for(idle[0][0].read(), 9) == b""
        for _, writer in idle:
            writer.close()


@pytest.mark.slow
async def test_connections_that_come_in_bursts_close_one_another_too() -> None:
    async with running_servers(options()) as serving:
        idle = []
        for _ in range(6):  # each less than the backlog of connections
            opening = (asyncio.open_connection("127.0.0.1", serving.probe_port) for _ in range(90))
            idle += await asyncio.gather(*opening)
        ends = [asyncio.create_task(reader.read()) for reader, _ in idle]
        async with asyncio.timeout(9):
            while sum(end.done() for end in ends) < 200:
                await asyncio.wait([end for end in ends if not end.done()], return_when=asyncio.FIRST_COMPLETED)
        assert (await get(serving.probe_port, "/livez"))[0] == 200
        for _, writer in idle:
            writer.close()
        await asyncio.wait(ends)


@pytest.mark.slow
async def test_those_that_come_in_one_burst_close_the_oldest_and_not_one_another() -> None:
    async with running_servers(options()) as serving:
        silent = [await asyncio.open_connection("127.0.0.1", serving.probe_port) for _ in range(64)]
        burst = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", serving.probe_port) for _ in range(40)))
        for _, writer in burst:
            writer.write(b"GET /livez HTTP/1.1\r\nHost: operator\r\n\r\n")
        async with asyncio.timeout(9):
            answers = [await reader.readline() for reader, _ in burst]

        assert set(answers) == {b"HTTP/1.1 200 OK\r\n"}
        for _, writer in [*silent, *burst]:
            writer.close()


async def test_a_request_with_endless_headers_is_refused() -> None:
    async with running_servers(options()) as serving:
        status, _, _ = await get(serving.probe_port, "/livez", {"X-Long": "x" * 20_000})

    assert status == 400


async def test_scrapes_beyond_a_few_at_once_are_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_servers(options()) as serving:
        assert serving.metrics is not None
        go_on = asyncio.Event()
        write = serving.metrics.render_exposition

        async def slow(**given: Any) -> Any:
            await go_on.wait()
            return await write(**given)

        monkeypatch.setattr(serving.metrics, "render_exposition", slow)
        scrapes = [asyncio.create_task(get(serving.metrics_port, "/metrics")) for _ in range(6)]
        done, _ = await asyncio.wait(scrapes, return_when=asyncio.FIRST_COMPLETED, timeout=30)
        go_on.set()
        statuses = sorted([(await each)[0] for each in scrapes])

    assert done
    assert statuses == [200, 200, 200, 200, 503, 503]


async def test_scrapes_one_after_the_other_are_all_answered() -> None:
    async with running_servers(options()) as serving:
        statuses = [(await get(serving.metrics_port, "/metrics"))[0] for _ in range(6)]

    assert statuses == [200] * 6


async def test_a_failing_request_reveals_nothing_and_affects_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_servers(options()) as serving:
        assert serving.metrics is not None
        with monkeypatch.context() as broken:
            broken.setattr(serving.metrics, "render_exposition", _no_list)
            failed = await get(serving.metrics_port, "/metrics")
        after = await get(serving.metrics_port, "/metrics")

    assert failed[:2] == (500, "internal server error\n")
    assert after[0] == 200
    assert "'/metrics': the handler of a request failed" in caplog.text


async def test_leaving_closes_the_remaining_connections() -> None:
    async with running_servers(options()) as serving:
        assert serving.probe_port is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.probe_port)
        writer.write(b"GET /livez HTTP/1.1\r\nHost: operator\r\n\r\n")
        await reader.readuntil(b"\r\n\r\nok")

    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()


async def test_a_port_that_is_taken_is_one_clear_error_and_leaves_nothing_open() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        before = len(asyncio.all_tasks())
        with pytest.raises(
            ConfigurationError, match=f"the server for metrics cannot listen on 127.0.0.1:{port}: .* its own port"
        ):
            await ObservabilityServers(options(metrics_address=f"127.0.0.1:{port}"), RuntimeSources()).__aenter__()

    assert len(asyncio.all_tasks()) == before


async def test_leaving_ends_every_task_and_frees_the_ports() -> None:
    before = asyncio.all_tasks()
    async with running_servers(options()) as serving:
        ports = (serving.metrics_port, serving.probe_port)
        await get(serving.metrics_port, "/metrics")

    assert asyncio.all_tasks() == before
    for port in ports:
        with pytest.raises(aiohttp.ClientConnectorError):
            await get(port, "/")


async def test_all_interfaces_are_one_port() -> None:
    async with running_servers(options(probe_address=":0")) as serving:
        assert (await get(serving.probe_port, "/livez"))[0] == 200


async def test_what_is_switched_off_is_not_there() -> None:
    async with running_servers(options(metrics_address="0", probe_address="0")) as serving:
        assert serving.metrics is None
        assert serving.metrics_port is serving.probe_port is None


async def test_tokens_in_clear_text_beyond_loopback_are_warned_of(
    tokens: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with running_servers(options(metrics_address=":0", token_file=tokens)):
        pass

    assert "clear text" in caplog.text


def issue(folder: Path, serial: int) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)  # noqa: TID251  # a certificate is valid by the machine's clock
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    (folder / "tls.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "tls.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


def serial_at(port: int | None) -> int:
    assert port is not None
    pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=10)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


async def test_metrics_are_served_over_tls(tmp_path: Path) -> None:
    files = issue(tmp_path, 7)
    async with running_servers(options(metrics_certificate=files)) as serving:
        status, body, _ = await get(serving.metrics_port, "/metrics", ssl=False)
        serial = await asyncio.to_thread(serial_at, serving.metrics_port)

    assert (status, serial) == (200, 7)
    [sample] = parse_exposition(body)["certwatcher_read_certificate_total"].samples
    assert sample.value == 1


async def test_connections_that_never_end_their_handshake_are_counted_too(tmp_path: Path) -> None:
    async with running_servers(options(metrics_certificate=issue(tmp_path, 7))) as serving:
        silent = [await asyncio.open_connection("127.0.0.1", serving.metrics_port) for _ in range(150)]
        ends = [asyncio.create_task(reader.read()) for reader, _ in silent]
        async with asyncio.timeout(9):  # less than a handshake may take
            await asyncio.wait(ends[:86])
        assert (await get(serving.metrics_port, "/metrics", ssl=False))[0] == 200
        for _, writer in silent:
            writer.close()
        await asyncio.wait(ends)


async def test_a_silent_client_is_disconnected_without_tls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("konverge._internal.runtime.observability.read_server._SILENT_SECONDS", 0.1)
    async with running_servers(options()) as serving:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.probe_port)

        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()


async def test_a_certificate_that_cannot_be_read_is_one_clear_error(tmp_path: Path) -> None:
    files = issue(tmp_path, 7)
    (tmp_path / "tls.key").write_text("no key")

    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        await ObservabilityServers(options(metrics_certificate=files), RuntimeSources()).__aenter__()


async def test_the_debug_page_is_cheap_to_leave_off_and_reads_nothing_then() -> None:
    async with running_servers(options(), RuntimeSources(leases=_no_list)) as serving:
        assert (await get(serving.metrics_port, "/debug/"))[0] == 404
