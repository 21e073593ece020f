"""The server over loopback: TLS, limits, deadlines, an orderly shutdown."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from konverge._internal.runtime.rate_limited_log import RateLimitedLog
from konverge._internal.runtime.webhooks import (
    AdmissionResponse,
    AdmissionReview,
    OperatorHooks,
    ServerLimits,
    WebhookOptions,
    WebhookServer,
)
from konverge._internal.runtime.webhooks.application import compute_response_seconds
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError
from tests.runtime.webhooks.sample_reviews import build_admission_review, build_hook, decode_response, encode_review

pytestmark = pytest.mark.anyio

PATH = build_hook().path
JSON = {"content-type": "application/json"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class SteppedClock(SystemClock):
    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Gate:
    """A handler that waits until the test releases it."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.most = 0
        self.inside = 0

    async def review(self, review: AdmissionReview) -> AdmissionResponse:
        self.inside += 1
        self.most = max(self.most, self.inside)
        self.entered.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        finally:
            self.inside -= 1
        return AdmissionResponse()


class Recorder:
    def __init__(self) -> None:
        self.codes: list[int] = []
        self.refusals: Counter[str] = Counter()
        self.started_count = 0

    def on_start(self, webhook: str) -> None:
        assert webhook == PATH
        self.started_count += 1

    def on_finish(self, webhook: str, code: int, *, seconds: float) -> None:
        assert seconds >= 0
        self.codes.append(code)

    def on_refusal(self, reason: str) -> None:
        self.refusals[reason] += 1


@asynccontextmanager
async def serving(hook: Any = None, **options: Any) -> AsyncIterator[tuple[WebhookServer, aiohttp.ClientSession]]:
    observer = options.pop("observer", None)
    hooks = OperatorHooks((hook or build_hook(),))
    async with (
        WebhookServer(WebhookOptions(port=0, **options), hooks, observer=observer) as server,
        trusting(server) as session,
    ):
        yield server, session


@asynccontextmanager
async def trusting(server: WebhookServer) -> AsyncIterator[aiohttp.ClientSession]:
    context = ssl.create_default_context(cadata=server.endpoint.ca_bundle.decode())
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        yield session


async def ask(session: aiohttp.ClientSession, path: str = PATH, body: bytes | None = None, **headers: str) -> Any:
    async with session.post(
        path, data=body or encode_review(build_admission_review()), headers={**JSON, **headers}
    ) as answer:
        return answer.status, await answer.read()


async def test_a_question_over_tls_is_answered() -> None:
    async with serving() as (_, session):
        status, body = await ask(session, f"{PATH}?timeout=10s")

    assert status == 200
    assert decode_response(body)["allowed"] is True


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "message"),
    [
        (PATH, b"{}", {}, 400, b"the body is not a valid AdmissionReview"),
        (PATH, encode_review(build_admission_review("DELETE")), {}, 400, b"found the operation DELETE"),
        (PATH, b"x" * 2000, {}, 413, b"expected at most 1000 bytes"),
        (PATH, b"{}", {"content-type": "text/plain"}, 415, b"found text/plain"),
        ("/validate/other", b"{}", {}, 404, b"404"),
    ],
)
async def test_an_invalid_request_gets_the_cause(
    path: str, body: bytes, headers: Any, status: int, message: bytes
) -> None:
    async with serving(limits=ServerLimits(admission_bytes=1000)) as (_, session):
        found, answer = await ask(session, path, body, **headers)

    assert found == status
    assert message in answer


@pytest.mark.slow
async def test_all_bad_requests_are_counted_by_reason_and_few_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()
    plain = {"content-type": "text/plain"}
    async with serving(observer=recorder, limits=ServerLimits(admission_bytes=1000)) as (server, session):
        for _ in range(60):
            await ask(session, body=b"{}")
            await ask(session, body=b"x" * 2000)
            await ask(session, body=b"{}", **plain)
            await ask(session, "/validate/other", b"{}")
            async with session.get(PATH) as answer:
                assert answer.status == 405
        for _ in range(60):
            assert await say(server, b"no HTTP\r\n\r\n") == b"HTTP/1.0 400 Bad Request\r\n"

    reasons = ["BadRequest", "RequestEntityTooLarge", "UnsupportedMediaType", "NotFound", "MethodNotAllowed", "NotHTTP"]
    assert recorder.refusals == dict.fromkeys(reasons, 60)
    warnings = [record.getMessage() for record in caplog.records if record.name == "konverge.webhooks"]
    assert [line.partition(":")[0] for line in warnings[:6]] == [
        *(f"a request was answered {code}" for code in (400, 413, 415, 404, 405, 400)),
    ]
    assert warnings[6:] == [f"{reason}: 59 more were not logged" for reason in reasons]


def test_a_warning_is_logged_once_a_minute_with_the_number_of_those_that_were_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = SteppedClock()
    log = RateLimitedLog(logging.getLogger("konverge.webhooks"), clock)

    for number in range(1800):
        clock.seconds = number / 10
        log.log_warning("BadRequest", "a request was answered 400")

    assert [record.getMessage() for record in caplog.records] == [
        "a request was answered 400",
        "a request was answered 400 (599 more of these were not logged)",
        "a request was answered 400 (599 more of these were not logged)",
    ]


async def say(server: WebhookServer, text: bytes) -> bytes:
    context = ssl.create_default_context(cadata=server.endpoint.ca_bundle.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    writer.write(text)
    line = await reader.readline()
    writer.close()
    return line


async def test_a_body_that_does_not_say_how_long_it_is_is_cut_off_at_the_limit() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100_000):
            yield b"x" * 1000

    async with (
        serving(limits=ServerLimits(admission_bytes=10_000)) as (_, session),
        session.post(PATH, data=endless(), headers=JSON) as answer,
    ):
        assert answer.status == 413


async def test_a_page_is_only_asked_with_post_and_probes_have_one() -> None:
    async with serving() as (server, session):
        async with session.get(PATH) as answer:
            assert answer.status == 405
        async with session.get("/healthz") as answer:
            assert answer.status == 200
        assert server.unready_reason == ""
    assert server.unready_reason == "the webhook server is not running"


async def test_without_trust_there_is_no_conversation() -> None:
    async with serving() as (server, _), aiohttp.ClientSession(server.url) as stranger:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await ask(stranger)


async def test_old_tls_is_refused() -> None:
    async with serving() as (server, _):
        context = ssl.create_default_context(cadata=server.endpoint.ca_bundle.decode())
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=context)


@pytest.mark.slow
async def test_the_servers_deadline_leaves_time_for_the_way_back() -> None:
    gate = Gate()
    async with serving(build_hook(gate.review, handlers="check")) as (_, session):
        status, body = await ask(session, f"{PATH}?timeout=1s")

    assert status == 200
    assert decode_response(body)["status"]["message"].startswith("check took longer than 0.")


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [("10s", 9.5), ("1s", 0.9), ("1m0s", 59.5), ("", 9.5), ("soon", 9.5), ("0s", 9.5), ("999m", 59.5), ("1.5s", 1.35)],
)
def test_the_deadline_is_read_from_the_query(timeout: str, seconds: float) -> None:
    assert compute_response_seconds(timeout, 10) == pytest.approx(seconds)


async def test_no_more_are_worked_on_than_there_is_room_for() -> None:
    gate, recorder = Gate(), Recorder()
    limits = ServerLimits(concurrent=2, waiting=3)
    async with serving(build_hook(gate.review), limits=limits, observer=recorder) as (_, session):
        asked = [asyncio.create_task(ask(session)) for _ in range(6)]
        (refused,), others = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED, timeout=10)
        gate.open.set()
        await asyncio.wait(others, timeout=10)

    assert refused.result() == (429, b"too many requests are waiting")
    assert gate.most == 2
    assert sorted(recorder.codes) == [200] * 5 + [429]
    assert recorder.started_count == 6


async def test_a_disconnect_cancels_the_handler() -> None:
    gate, recorder = Gate(), Recorder()
    async with serving(build_hook(gate.review), observer=recorder) as (_, session):
        asking = asyncio.create_task(ask(session))
        await gate.entered.wait()
        asking.cancel()
        async with asyncio.timeout(10):
            await gate.cancelled.wait()

    assert recorder.codes == [499]


async def test_stopping_lets_a_request_under_way_end_and_takes_no_other() -> None:
    gate = Gate()
    server = WebhookServer(WebhookOptions(port=0), OperatorHooks((build_hook(gate.review),)))
    async with server:
        endpoint, url = server.endpoint, server.url
        context = ssl.create_default_context(cadata=endpoint.ca_bundle.decode())
        session = aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=context))
        asking = asyncio.create_task(ask(session))
        await gate.entered.wait()
        asyncio.get_running_loop().call_later(0.05, gate.open.set)
    async with session:
        status, _ = await asking
        with pytest.raises(aiohttp.ClientConnectorError):
            await ask(session)

    assert status == 200


async def test_stopping_does_not_wait_for_ever() -> None:
    gate = Gate()
    async with serving(build_hook(gate.review), grace=timedelta(seconds=0.05)) as (_, session):
        asking = asyncio.create_task(ask(session, f"{PATH}?timeout=30s"))
        await gate.entered.wait()
        closing = session
    await asyncio.wait([asking], timeout=10)

    assert gate.cancelled.is_set()
    assert closing.closed
    assert asking.done()
    asking.exception()


async def test_a_port_in_use_is_reported() -> None:
    async with serving() as (server, _):
        with pytest.raises(ConfigurationError, match=rf"cannot listen on 127.0.0.1:{server.port}: "):
            await WebhookServer(WebhookOptions(port=server.port), OperatorHooks()).__aenter__()
