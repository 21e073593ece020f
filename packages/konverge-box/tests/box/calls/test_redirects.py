"""Servers that redirect calls."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from konverge_box._internal.calls import CallError
from tests.box.calls.call_fixtures import LOOPBACK, Secrets, build_caller, respond_with, run_calls, serve_site
from tests.resolution.network.http_servers import FakeDns, RequestHandlerFunction

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

SECRETS = {"shop/token": {"token": "hunter2"}}
AUTH = "auth: {secretRef: {name: token, key: token}}"


def to(target: str, status: int = 302) -> RequestHandlerFunction:
    async def serve(request: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": target})

    return serve


class Seen:
    """A handler that responds and records its requests."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], str]] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.requests.append((request.method, headers, await request.text()))
        return web.json_response({"here": True})


async def test_a_redirect_is_followed() -> None:
    async with serve_site(a=to("/b"), b=to("c"), c=respond_with({"here": True})) as url:
        assert (await run_calls(f"[{{name: a, url: '{url}/a'}}]"))["a"]["here"] is True


async def test_redirects_are_followed_five_times_and_not_six() -> None:
    served = {f"r{number}": to(f"/r{number + 1}") for number in range(6)}
    async with serve_site(**served, r6=respond_with({"here": True})) as url:
        assert (await run_calls(f"[{{name: a, url: '{url}/r1'}}]"))["a"]["here"] is True
        with pytest.raises(CallError, match="redirects more than 5 times"):
            await run_calls(f"[{{name: a, url: '{url}/r0'}}]")


async def test_a_redirect_in_a_circle_ends() -> None:
    async with serve_site(a=to("/a")) as url:
        with pytest.raises(CallError, match="redirects more than 5 times"):
            await run_calls(f"[{{name: a, url: '{url}/a'}}]")


TARGETS = {
    "metadata service": ("http://169.254.169.254/latest/meta-data/", "169.254.169.254 may not be reached"),
    "loopback by IPv6": ("http://[::1]:80/", "::1 may not be reached: its network is loopback"),
    "mapped": ("http://[::ffff:169.254.169.254]/", "may not be reached: its network is link-local"),
    "a name of one": ("http://metadata.example/", r"metadata.example (169.254.169.254) may not be reached"),
    "a short form of one": ("http://2852039166/", "neither a name nor an address"),
    "an octal form of one": ("http://0251.0376.0251.0376/", "neither a name nor"),
    "a file": ("file:///etc/passwd", "redirects to a URL that cannot be used: expected http:// or https://"),
    "another protocol": ("redis://127.0.0.1/", "redirects to a URL that cannot be used"),
    "a password": ("http://user:hunter3@example.com/", "expected no user and no password"),
    "nonsense": ("http://[::1", "redirects to a URL that cannot be used"),
}


@pytest.mark.parametrize(("target", "problem"), TARGETS.values(), ids=TARGETS)
async def test_each_hop_is_checked_as_the_first_one(target: str, problem: str) -> None:
    names = FakeDns({"metadata.example": [["169.254.169.254"]]})
    async with serve_site(a=to(target)) as url:
        with pytest.raises(CallError) as failure:
            await run_calls(f"[{{name: a, url: '{url}/a'}}]", by=build_caller(lookup=names), allowed=LOOPBACK)
    assert problem in str(failure.value)
    assert "hunter3" not in str(failure.value)


async def test_a_credential_stays_with_the_server_it_is_meant_for() -> None:
    here, elsewhere = Seen(), Seen()
    async with serve_site(there=elsewhere) as other, serve_site(a=to("/b"), b=here, c=to(f"{other}/there")) as url:
        for path in "ac":
            text = f"[{{name: a, url: '{url}/{path}', headers: {{X-Key: k, Cookie: c, Accept: text/plain}}, {AUTH}}}]"
            assert (await run_calls(text, secrets=Secrets(SECRETS)))["a"]["here"] is True
    (_, kept, _), (_, left, _) = here.requests[0], elsewhere.requests[0]
    assert (kept["authorization"], kept["x-key"], kept["cookie"]) == ("Bearer hunter2", "k", "c")
    assert not {"authorization", "x-key", "cookie"} & left.keys()
    assert left["accept"] == "text/plain"


async def test_a_credential_does_not_come_back_by_a_detour() -> None:
    here = Seen()
    served: dict[str, Any] = {"end": here}
    async with (
        serve_site(**served) as url,
        serve_site(back=to(f"{url}/end")) as other,
        serve_site(a=to(f"{other}/back")) as start,
    ):
        text = f"[{{name: a, url: '{start}/a', {AUTH}}}]"
        await run_calls(text, secrets=Secrets(SECRETS))
    assert "authorization" not in here.requests[0][1]


@pytest.mark.parametrize(
    ("method", "status", "seen"),
    [
        ("POST", 301, ("GET", "")),
        ("POST", 302, ("GET", "")),
        ("PUT", 303, ("GET", "")),
        ("PUT", 302, ("PUT", "hello")),
        ("POST", 307, ("POST", "hello")),
        ("POST", 308, ("POST", "hello")),
    ],
)
async def test_the_status_decides_what_is_sent_to_the_next_place(
    method: str, status: int, seen: tuple[str, str]
) -> None:
    end = Seen()
    async with serve_site(a=to("/b", status), b=end) as url:
        await run_calls(f"[{{name: a, url: '{url}/a', method: {method}, body: hello}}]")
    assert (end.requests[0][0], end.requests[0][2]) == seen


async def test_a_body_is_not_taken_to_another_server() -> None:
    end = Seen()
    async with serve_site(b=end) as other, serve_site(a=to(f"{other}/b", 307)) as url:
        with pytest.raises(CallError, match="redirects a request with a body to another server"):
            await run_calls(f"[{{name: a, url: '{url}/a', method: POST, body: hello}}]")
    assert end.requests == []
