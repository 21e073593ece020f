"""Authentication of clients: tokens, reviews of the API server, a token file."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from konverge._internal.runtime.observability.authentication import parse_bearer_token
from konverge.clock import SimulatedClock
from konverge.errors import ConfigurationError, ForbiddenError, InvalidError
from konverge.kube import Object
from konverge.observability import ClusterAuthorization, TokenFileAuthenticator

pytestmark = pytest.mark.anyio

TOKEN = "a-token-that-is-long-enough"


class ApiServer:
    """Accepts one token, and lets its user read one path; `test_reviews` tests the responses of real servers."""

    def __init__(self) -> None:
        self.reviews: list[Object] = []
        self.accepted = TOKEN
        self.failure: Exception | None = None
        self.hold = asyncio.Event()
        self.hold.set()

    async def create(self, obj: Object) -> Object:
        self.reviews.append(obj)
        await self.hold.wait()
        if self.failure is not None:
            raise self.failure
        spec: dict[str, Any] = obj["spec"]
        if obj["kind"] == "TokenReview":
            if spec["token"] != self.accepted:
                return {**obj, "status": {"error": "invalid bearer token"}}
            return {**obj, "status": {"authenticated": True, "user": {"username": "scraper", "groups": ["readers"]}}}
        return {**obj, "status": {"allowed": spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}}}


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic " + base64.b64encode(b"anybody:a:b").decode(), "a:b"),
        ("Basic !!!", ""),
        ("Basic \udcff", ""),
        ("Basic " + base64.b64encode(b"anybody:\xff").decode(), ""),
        ("Digest abc", ""),
        ("Bearer", ""),
        ("Bearer \udc80", ""),
        ("Bearer " + "x" * 20_000, ""),
        ("", ""),
    ],
)
async def test_a_token_is_read_from_the_header_or_is_none(header: str, token: str) -> None:
    assert parse_bearer_token(header) == token


async def test_an_authorized_client_has_access() -> None:
    server = ApiServer()

    decision = await ClusterAuthorization(server, clock=SimulatedClock()).decide(TOKEN, method="GET", path="/metrics")

    assert decision.status == 200
    access = server.reviews[1]["spec"]
    assert (access["user"], access["groups"]) == ("scraper", ["readers"])


async def test_an_unknown_client_gets_401_and_an_unauthorized_one_403() -> None:
    authorization = ClusterAuthorization(ApiServer(), clock=SimulatedClock())

    assert (await authorization.decide("another", method="GET", path="/metrics")).status == 401
    assert (await authorization.decide(TOKEN, method="GET", path="/debug/")).status == 403


async def test_a_request_without_a_token_sends_no_review() -> None:
    server = ApiServer()

    assert (await ClusterAuthorization(server).decide("", method="GET", path="/metrics")).status == 401
    assert server.reviews == []


async def test_an_answer_holds_for_a_short_time_and_a_revoked_token_is_noticed_after_it() -> None:
    server, clock = ApiServer(), SimulatedClock()
    authorization = ClusterAuthorization(server, clock=clock, allowed_seconds=60)
    await authorization.decide(TOKEN, method="GET", path="/metrics")
    server.accepted = "none"

    await clock.sleep(59)
    assert (await authorization.decide(TOKEN, method="GET", path="/metrics")).status == 200
    assert len(server.reviews) == 2

    await clock.sleep(2)
    assert (await authorization.decide(TOKEN, method="GET", path="/metrics")).status == 401


async def test_a_token_that_becomes_valid_is_let_in_soon() -> None:
    server, clock = ApiServer(), SimulatedClock()
    authorization = ClusterAuthorization(server, clock=clock, refused_seconds=10)
    await authorization.decide("new", method="GET", path="/metrics")
    server.accepted = "new"

    assert (await authorization.decide("new", method="GET", path="/metrics")).status == 401
    await clock.sleep(11)
    assert (await authorization.decide("new", method="GET", path="/metrics")).status == 200


async def test_an_answer_is_for_its_path_and_method_alone() -> None:
    authorization = ClusterAuthorization(ApiServer(), clock=SimulatedClock())
    await authorization.decide(TOKEN, method="GET", path="/metrics")

    assert (await authorization.decide(TOKEN, method="HEAD", path="/metrics")).status == 403


async def test_a_flood_of_tokens_neither_fills_memory_nor_floods_the_server() -> None:
    server = ApiServer()
    authorization = ClusterAuthorization(server, clock=SimulatedClock(), size=3, concurrent=2)
    for number in range(10):
        await authorization.decide(str(number), method="GET", path="/metrics")
    assert len(authorization._decisions) == 3

    server.reviews.clear()
    server.hold.clear()
    asking = [asyncio.create_task(authorization.decide(f"x{n}", method="GET", path="/metrics")) for n in range(5)]
    await SimulatedClock().sleep(0)
    server.hold.set()

    assert sorted([(await each).status for each in asking]) == [401, 401, 503, 503, 503]
    assert len(server.reviews) == 2


async def test_a_failing_server_grants_no_access_and_its_text_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = ApiServer()
    server.failure = InvalidError(f"spec.token: {TOKEN}")
    authorization = ClusterAuthorization(server, clock=SimulatedClock())

    assert (await authorization.decide(TOKEN, method="GET", path="/metrics")).status == 500
    assert "InvalidError" in caplog.text
    assert TOKEN not in caplog.text

    server.failure = None
    assert (await authorization.decide(TOKEN, method="GET", path="/metrics")).status == 200


async def test_a_missing_permission_for_reviews_is_logged_with_its_role(caplog: pytest.LogCaptureFixture) -> None:
    server = ApiServer()
    server.failure = ForbiddenError("no")

    await ClusterAuthorization(server, clock=SimulatedClock()).decide(TOKEN, method="GET", path="/metrics")

    assert "system:auth-delegator" in caplog.text


async def test_a_cancelled_review_gives_its_place_back() -> None:
    server = ApiServer()
    server.hold.clear()
    authorization = ClusterAuthorization(server, clock=SimulatedClock(), concurrent=1)
    asking = asyncio.create_task(authorization.decide(TOKEN, method="GET", path="/metrics"))
    await SimulatedClock().sleep(0)

    asking.cancel()
    await asyncio.wait([asking])
    server.hold.set()

    assert (await authorization.decide(TOKEN, method="GET", path="/metrics")).status == 200


async def test_a_token_of_the_file_is_let_in_everywhere(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"# for the dashboard\n\n{TOKEN}\nanother-long-enough-one\n")
    tokens = TokenFileAuthenticator(file)

    assert (await tokens.decide(TOKEN, method="GET", path="/debug/")).status == 200
    assert (await tokens.decide("another-long-enough-one", method="GET", path="/debug/")).status == 200
    assert (await tokens.decide(TOKEN[:-1], method="GET", path="/debug/")).status == 401
    assert (await tokens.decide("", method="GET", path="/debug/")).status == 401


async def test_a_token_file_is_read_anew_and_without_it_no_client_has_access(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "tokens"
    file.write_text(TOKEN)
    tokens = TokenFileAuthenticator(file)

    file.write_text("one-that-was-rotated-in")
    assert (await tokens.decide(TOKEN, method="GET", path="/debug/")).status == 401

    file.unlink()
    assert (await tokens.decide("one-that-was-rotated-in", method="GET", path="/debug/")).status == 500
    assert "reading the token file failed" in caplog.text


@pytest.mark.parametrize("content", ["", "# none\n", "short\n", f"{TOKEN}\nshort\n", "x" * 70_000])
async def test_a_token_file_of_no_use_is_refused_at_the_start_without_showing_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(content)

    with pytest.raises(ConfigurationError) as error:
        TokenFileAuthenticator(file)

    assert TOKEN not in str(error.value)
