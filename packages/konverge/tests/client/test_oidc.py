"""The auth-provider oidc: its id-token is refreshed at the provider, and kept in memory."""

from __future__ import annotations

import asyncio
import base64
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge._internal.client.oidc import OidcCredentials, OidcProvider, parse_oidc_provider
from konverge.client import ClusterConfig, HttpTransport
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError, NotConnectedError
from tests.cancellation_leaks import cancel_again
from tests.client.certificates import NOW, CertificateAuthority
from tests.client.servers import Servers

pytestmark = pytest.mark.anyio

AUTHORITY = CertificateAuthority()
OLD, LATER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
BASIC = "Basic " + base64.b64encode(b"konverge:hush%2Fhush").decode()


@pytest.fixture
def anyio_backend() -> str:
    """Use real time: there are sockets."""
    return "asyncio"


def token(expires: datetime, number: int = 0) -> str:
    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': int(expires.timestamp()), 'n': number})}.c2ln"


@dataclass
class Issuer:
    """A provider whose refresh tokens work once."""

    url: str = ""
    says_it_is: str = ""
    token_endpoint: str = ""
    takes_basic: bool = True
    failure: tuple[int, dict[str, str]] | None = None
    refresh_token: str = "r0"
    answers: asyncio.Event | None = None
    asked: list[dict[str, str]] = field(default_factory=list)
    issued: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/issuer/.well-known/openid-configuration":
            endpoint = self.token_endpoint or f"{self.url}/token"
            return web.json_response({"issuer": self.says_it_is or self.url, "token_endpoint": endpoint})
        form = {str(name): str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        by_header = request.headers.get("authorization") == BASIC
        by_form = (form.get("client_id"), form.get("client_secret")) == ("konverge", "hush/hush")
        if not (by_header if self.takes_basic else by_form):
            return web.json_response({"error": "invalid_client"}, status=401)
        if self.failure is not None:
            return web.json_response(self.failure[1], status=self.failure[0])
        if form["refresh_token"] != self.refresh_token:
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.issued.append(token(LATER, len(self.issued) + 1))
        self.refresh_token = f"r{len(self.issued)}"
        if self.answers is not None:
            await self.answers.wait()
        return web.json_response({"id_token": self.issued[-1], "refresh_token": self.refresh_token})


@pytest.fixture
async def issuer(servers: Servers) -> Issuer:
    found = Issuer()
    found.url = f"{await servers.start(found.answer, tls=AUTHORITY.issue('issuer'))}/issuer"
    return found


def provider(issuer: Issuer, **fields: Any) -> OidcProvider:
    found = OidcProvider(
        user='user "ann"',
        issuer=issuer.url,
        client_id="konverge",
        client_secret="hush/hush",
        id_token=token(OLD),
        refresh_token="r0",
        authority=AUTHORITY.certificate,
    )
    return replace(found, **fields)


def credentials(issuer: Issuer, **fields: Any) -> OidcCredentials:
    return OidcCredentials(provider(issuer, **fields), SystemClock())


async def token_of(found: OidcCredentials) -> str:
    return (await found.get_identity()).headers["authorization"].removeprefix("Bearer ")


async def test_a_token_that_is_valid_is_used_as_it_is(issuer: Issuer) -> None:
    valid = token(LATER)

    assert await token_of(credentials(issuer, id_token=valid)) == valid
    assert issuer.asked == []


async def test_a_token_that_has_expired_is_refreshed_once_for_all(issuer: Issuer) -> None:
    found = credentials(issuer)
    tokens = await asyncio.gather(*(token_of(found) for _ in range(10)))

    assert set(tokens) == {issuer.issued[0]}
    assert issuer.asked == [{"grant_type": "refresh_token", "refresh_token": "r0"}]


async def test_the_first_token_may_have_to_be_fetched(issuer: Issuer) -> None:
    assert await token_of(credentials(issuer, id_token="")) == issuer.issued[0]


async def test_a_provider_may_want_the_secret_in_the_form(issuer: Issuer) -> None:
    issuer.takes_basic = False

    assert await token_of(credentials(issuer)) == issuer.issued[0]
    assert issuer.asked[-1]["client_secret"] == "hush/hush"


async def test_a_refused_token_is_refreshed_with_the_newest_refresh_token(issuer: Issuer, servers: Servers) -> None:
    async def newest(request: web.Request) -> web.Response:
        is_newest = request.headers["authorization"] == f"Bearer {issuer.issued[-1] if issuer.issued else ''}"
        return web.Response(text="fine", status=200 if is_newest and len(issuer.issued) == 2 else 401)

    found = credentials(issuer)
    await token_of(found)
    transport = HttpTransport(ClusterConfig(await servers.start(newest), "the test", credentials=found))
    answer = await transport.request("GET", "/", timeout_seconds=9)
    await transport.close()

    assert answer.status == 200
    assert [asked["refresh_token"] for asked in issuer.asked] == ["r0", "r1"]


async def test_another_event_loop_knows_the_newest_tokens(issuer: Issuer) -> None:
    found = credentials(issuer)
    first = await token_of(found)
    other = found.clone()
    assert isinstance(other, OidcCredentials)
    same = await token_of(other)
    other.invalidate(await other.get_identity())
    renewed = await token_of(other)

    assert (first, same, renewed) == (issuer.issued[0], issuer.issued[0], issuer.issued[1])


async def test_a_refresh_token_that_another_event_loop_has_used_up_is_no_failure(issuer: Issuer) -> None:
    one = credentials(issuer)
    other = one.clone()
    first, second = await asyncio.gather(one.get_identity(), other.get_identity())

    assert first.headers == second.headers == {"authorization": f"Bearer {issuer.issued[0]}"}


async def test_who_is_cancelled_while_the_provider_answers_loses_no_refresh_token(issuer: Issuer) -> None:
    issuer.answers = asyncio.Event()
    found = credentials(issuer)
    asking = asyncio.create_task(found.get_identity())
    async with asyncio.timeout(5):
        while not issuer.issued:
            await SystemClock().sleep(0.001)
    await cancel_again(asking)
    issuer.answers.set()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert await token_of(found) == issuer.issued[-1]
    assert [asked["refresh_token"] for asked in issuer.asked] == ["r0", "r1"]


async def test_without_a_refresh_token_somebody_must_log_in(issuer: Issuer) -> None:
    found = credentials(issuer, refresh_token="")

    with pytest.raises(ConfigurationError, match='the id-token of user "ann" has expired.*log in again'):
        await found.get_identity()
    assert not found.invalidate(await credentials(issuer, id_token=token(LATER)).get_identity())


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ((400, {"error": "invalid_grant"}), ConfigurationError, "does not refresh the token: invalid_grant. Log in"),
        ((403, {"error": "r0 is not known\nERROR"}), ConfigurationError, "the token: HTTP status 403. Log in"),
        ((503, {}), NotConnectedError, "cannot refresh the token now: HTTP status 503"),
        ((429, {}), NotConnectedError, "cannot refresh the token now: HTTP status 429"),
        ((200, {"access_token": "s3cret"}), ConfigurationError, "returned no id_token"),
    ],
)
async def test_what_the_provider_refuses_is_told_without_secrets(
    issuer: Issuer, answer: tuple[int, dict[str, str]], kind: type[Exception], words: str
) -> None:
    issuer.failure = answer

    with pytest.raises(kind, match=words) as raised:
        await credentials(issuer).get_identity()
    assert not any(secret in str(raised.value) for secret in ("r0", "hush", "s3cret", token(OLD)))


async def test_a_provider_that_is_not_who_it_should_be_is_not_trusted(issuer: Issuer) -> None:
    issuer.says_it_is = "https://another.example"

    with pytest.raises(ConfigurationError, match="the discovery document has another issuer. Check idp-issuer-url"):
        await credentials(issuer).get_identity()
    assert issuer.asked == []


async def test_a_provider_of_another_authority_is_not_trusted(issuer: Issuer) -> None:
    with pytest.raises(NotConnectedError, match=r"issuer of user \"ann\" does not respond: .*verify failed"):
        await credentials(issuer, authority=CertificateAuthority("another").certificate).get_identity()
    assert issuer.asked == []


@pytest.mark.parametrize(
    "endpoint", ["https://[", "https://a:99999/", "https:///x", f"https://{'a' * 70}.x/", "https://a/\0"]
)
async def test_a_token_endpoint_that_is_no_url_is_told(issuer: Issuer, endpoint: str) -> None:
    issuer.token_endpoint = endpoint

    with pytest.raises(ConfigurationError, match="the discovery document has no valid token_endpoint"):
        await credentials(issuer).get_identity()


async def test_a_token_that_expired_in_the_year_1_is_refreshed(issuer: Issuer) -> None:
    found = credentials(issuer, id_token=token(datetime(1, 1, 1, tzinfo=UTC)))

    assert await token_of(found) == issuer.issued[0]


def test_a_kubeconfig_says_all_that_is_needed(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.certificate)
    fields = {
        "idp-issuer-url": "https://issuer.example/",
        "client-id": "konverge",
        "client-secret": "s3cret",
        "id-token": "t",
        "refresh-token": "r",
        "idp-certificate-authority": "ca.crt",
    }
    found = parse_oidc_provider(fields, whose="ann", folder=tmp_path, env={"HTTPS_PROXY": "http://proxy"})

    assert found == OidcProvider(
        "ann", "https://issuer.example", "konverge", "s3cret", "t", "r", AUTHORITY.certificate, "http://proxy"
    )
    assert "s3cret" not in repr(found)
