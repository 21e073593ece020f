"""Asking over HTTP within rules: answers, connections, credentials, redirects."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge_resolution.network import (
    AllowedNetworks,
    GuardedHttp,
    HostUnreachableError,
    InvalidRequestError,
    NetworkError,
    OriginCredential,
    Proxy,
    RefusedAddressError,
    RefusedRedirectError,
    UntrustedCertificateError,
)
from tests.resolution.network.http_servers import (
    FakeDns,
    ForwardProxy,
    RecordingHandler,
    build_guarded_http,
    certificate,
    never_respond,
    redirect_to,
    route_paths,
    serve_connections,
    serve_site,
)

pytestmark = pytest.mark.anyio

MANY = 1 << 20


async def get_body(http: GuardedHttp, url: str, **more: Any) -> bytes:
    return (await http.get(url, max_bytes=MANY, **more)).body


async def test_any_status_is_an_answer_with_headers_in_lower_case_and_repeated_ones_joined() -> None:
    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        found = web.Response(status=401, body=b"who?")
        found.headers.add("WWW-Authenticate", "Bearer")
        found.headers.add("WWW-Authenticate", "Basic")
        return found

    async with serve_site(serve) as url:
        answer = await build_guarded_http().get(f"{url}/a?b=c", max_bytes=MANY)
    assert (answer.status, answer.body, answer.url) == (401, b"who?", f"{url}/a?b=c")
    assert answer.headers["www-authenticate"] == "Bearer, Basic"
    assert "who" not in repr(answer)


async def test_head_is_answered_without_a_body_whatever_length_is_announced() -> None:
    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(headers={"Content-Length": "5000000", "Content-Encoding": "gzip"})

    async with serve_site(serve) as url:
        answer = await build_guarded_http().head(url)
    assert (answer.body, answer.headers["content-length"]) == (b"", "5000000")


async def test_packed_answers_are_not_asked_for_and_nothing_else_is_told_than_a_name() -> None:
    seen = RecordingHandler()
    async with serve_site(seen) as url:
        await get_body(build_guarded_http(), url)
    sent = {name.lower(): value for name, value in seen.requests[0].headers.items()}
    assert (sent["accept-encoding"], sent["user-agent"]) == ("identity", "konverge")
    assert set(sent) == {"host", "accept", "accept-encoding", "user-agent"}


async def test_requests_of_a_session_share_a_connection_whose_address_was_judged_once() -> None:
    seen, names = RecordingHandler(), FakeDns({"a.example": [["127.0.0.1"], ["169.254.169.254"]]})
    async with serve_site(seen) as url:
        port = port_of(url)
        async with build_guarded_http(names).session() as session:
            for _ in range(3):
                await session.get(f"http://a.example:{port}/", max_bytes=MANY)
        assert (len(seen.peers), names.asked) == (1, ["a.example"])
        with pytest.raises(RefusedAddressError):  # none was kept
            await build_guarded_http(names).get(f"http://a.example:{port}/", max_bytes=MANY)
    assert len(seen.requests) == 3


async def test_requests_without_a_session_have_a_connection_of_their_own() -> None:
    seen = RecordingHandler()
    async with serve_site(seen) as url:
        http = build_guarded_http()
        await asyncio.gather(*(get_body(http, url) for _ in range(3)))
    assert len(seen.peers) == 3


async def test_cookies_are_not_kept() -> None:
    seen = RecordingHandler(headers={"Set-Cookie": "a=b; Path=/"})
    async with serve_site(seen) as url, build_guarded_http().session() as session:
        await session.get(url, max_bytes=MANY)
        await session.get(url, max_bytes=MANY)
    assert "Cookie" not in seen.requests[1].headers


async def test_a_stream_is_read_as_far_as_it_is_wanted() -> None:
    async with (
        serve_site(RecordingHandler(b"x" * MANY)) as url,
        build_guarded_http().stream(url, max_bytes=MANY) as found,
    ):
        async for piece in found.iter_chunks():
            assert piece
            break


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


# Whom it reaches.

REFUSED = {
    "loopback": "http://127.0.0.1/",
    "loopback of IPv6": "http://[::1]/",
    "mapped": "http://[::ffff:127.0.0.1]/",
    "translated": "http://[64:ff9b::7f00:1]/",
    "unspecified": "http://0.0.0.0/",
    "metadata": "http://169.254.169.254/latest",
    "unique local": "http://[fd00::1]/",
    "a carrier's": "http://100.64.0.1/",
    "private": "https://10.0.0.1/",
    "a name": "http://private.example/",
    "a name of IPv6": "http://six.example/",
}
PRIVATE_NAMES = {"private.example": [["10.1.2.3"]], "six.example": [["fd00::2", "::1"]]}


@pytest.mark.parametrize("url", REFUSED.values(), ids=REFUSED)
async def test_what_is_not_public_is_refused_whatever_it_is_called(url: str) -> None:
    with pytest.raises(RefusedAddressError, match="may not be reached: its network is"):
        await get_body(build_guarded_http(FakeDns(PRIVATE_NAMES), networks=AllowedNetworks()), url)


@pytest.mark.parametrize("host", ["2130706433", "0177.0.0.1", "0x7f.0.0.1", "127.1", "0x7f000001", "127.0.0.0x1"])
async def test_numbers_that_some_read_as_an_address_are_no_host(host: str) -> None:
    names = FakeDns()
    with pytest.raises(InvalidRequestError, match="neither a name nor an address"):
        await get_body(build_guarded_http(names), f"http://{host}/")
    assert names.asked == []


async def test_a_name_that_is_another_address_by_the_next_request_is_judged_anew() -> None:
    names = FakeDns({"a.example": [["127.0.0.1"], ["127.0.0.2"]]})
    only = build_guarded_http(names, networks=AllowedNetworks(["127.0.0.1/32"]))
    async with serve_site(RecordingHandler()) as url:
        there = f"http://a.example:{url.rpartition(':')[2]}/"
        assert await get_body(only, there) == b"here"
        with pytest.raises(RefusedAddressError, match=r"a\.example \(127\.0\.0\.2\) may not be reached"):
            await get_body(only, there)


UNUSABLE = {
    "ftp": ("ftp://example.com/", "found scheme ftp"),
    "file": ("file:///etc/passwd", "found scheme file"),
    "gopher": ("gopher://example.com/", "found scheme gopher"),
    "data": ("data:text/plain,hello", "found scheme none"),
    "javascript": ("javascript:alert(1)", "found scheme none"),
    "no host": ("http:///path", "found no host"),
    "no scheme": ("example.com/a", "found scheme none"),
    "a password": ("http://user:hunter2@example.com/", "expected no user and no password"),
    "a blank": ("http://example.com/a b", "expected no blanks"),
    "two lines": ("http://example.com/\r\nX: y", "expected no blanks"),
    "a backslash": ("http://example.com\\@evil.example/", "backslashes"),
    "a port that is none": ("http://example.com:99999/", "an invalid port"),
    "port zero": ("http://example.com:0/", "an invalid port"),
    "a zone": ("http://[fe80::1%25eth0]/", "found no host"),
    "too long": (f"http://example.com/{'a' * 9000}", "at most 8192 characters"),
}


@pytest.mark.parametrize(("url", "problem"), UNUSABLE.values(), ids=UNUSABLE)
async def test_a_url_that_cannot_be_used_is_refused_before_anything_is_asked(url: str, problem: str) -> None:
    names = FakeDns()
    with pytest.raises(InvalidRequestError) as failure:
        await get_body(build_guarded_http(names), url)
    assert problem in str(failure.value)
    assert "hunter2" not in str(failure.value)
    assert names.asked == []


async def test_a_header_that_would_be_two_is_refused_and_not_shown() -> None:
    async with serve_site(RecordingHandler()) as url:
        with pytest.raises(InvalidRequestError, match="cannot receive the request") as failure:
            await get_body(build_guarded_http(), url, headers={"X-A": "hunter2\r\nX-B: c"})
    assert "hunter2" not in str(failure.value)


async def test_a_name_that_nobody_knows_and_a_port_where_nobody_listens_are_told_apart() -> None:
    async with serve_connections(never_respond) as port:
        pass
    with pytest.raises(HostUnreachableError, match="has a name that cannot be resolved"):
        await get_body(build_guarded_http(), "http://no-such.example/")
    with pytest.raises(HostUnreachableError, match="cannot be connected to"):
        await get_body(build_guarded_http(), f"http://127.0.0.1:{port}/")


# Redirects.


async def test_redirects_are_followed_five_times_and_not_six() -> None:
    served = route_paths(**{f"r{number}": redirect_to(f"/r{number + 1}") for number in range(6)}, r6=RecordingHandler())
    async with serve_site(served) as url:
        answer = await build_guarded_http().get(f"{url}/r1", max_bytes=MANY)
        assert (answer.body, answer.url) == (b"here", f"{url}/r6")
        with pytest.raises(RefusedRedirectError, match="redirects more than 5 times"):
            await get_body(build_guarded_http(), f"{url}/r0")


async def test_a_redirect_in_a_circle_ends() -> None:
    seen = RecordingHandler(status=302, headers={"Location": "/"})
    async with serve_site(seen) as url:
        with pytest.raises(RefusedRedirectError, match="redirects more than 5 times"):
            await get_body(build_guarded_http(), url)
    assert len(seen.requests) == 6


HOPS = {
    "metadata service": ("http://169.254.169.254/latest", RefusedAddressError, "may not be reached"),
    "a name of it": ("http://private.example/", RefusedAddressError, "may not be reached"),
    "a short form": ("http://2852039166/", RefusedRedirectError, "neither a name nor an address"),
    "a file": ("file:///etc/passwd", RefusedRedirectError, "found scheme file"),
    "a password": ("http://user:hunter2@example.com/", RefusedRedirectError, "no user and no password"),
    "nonsense": ("http://[::1", RefusedRedirectError, "redirects to a URL that"),
    "nobody": ("http://no-such.example/", HostUnreachableError, "has a name that cannot be resolved"),
}


@pytest.mark.parametrize(("target", "failure", "problem"), HOPS.values(), ids=HOPS)
async def test_each_hop_is_judged_as_the_first_one_and_told_without_its_place(
    target: str, failure: type[NetworkError], problem: str
) -> None:
    async with serve_site(redirect_to(target)) as url:
        with pytest.raises(failure) as raised:
            await get_body(build_guarded_http(FakeDns(PRIVATE_NAMES)), url)
    assert raised.value.problem.startswith("redirects to a")
    assert problem in raised.value.problem
    assert "example" not in raised.value.problem
    assert "169.254" not in raised.value.problem


class NotListedError(Exception):
    """What a check of these tests raises."""


def only(*listed: str) -> Any:
    """A check that lets URLs pass that begin so, and notes all that it gets."""
    asked: list[str] = []

    def check(url: str) -> None:
        asked.append(url)
        if not url.startswith(listed):
            raise NotListedError(url)

    return check, asked


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    ("method", "headers", "body"),
    [
        ("GET", {}, None),
        ("GET", {"Range": "bytes=0-9"}, None),
        ("HEAD", {}, None),
        ("POST", {"Content-Type": "application/octet-stream"}, b"a blob"),
        ("PUT", {"Content-Type": "application/octet-stream"}, b"a blob"),
    ],
)
async def test_a_check_decides_about_each_hop_before_its_name_is_looked_up(
    method: str, headers: dict[str, str], body: bytes | None, status: int
) -> None:
    names = FakeDns({"listed.example": [["127.0.0.1"]], "unlisted.example": [["127.0.0.1"]]})
    seen = RecordingHandler()
    async with serve_site(seen) as unlisted:
        target = f"{unlisted.replace('127.0.0.1', 'unlisted.example')}/b?token=hunter2"
        async with serve_site(route_paths(a=redirect_to("/c", status), c=redirect_to(target, status))) as url:
            first = url.replace("127.0.0.1", "listed.example")
            check, asked = only(first)
            http = build_guarded_http(names).with_settings(check_hop=check)
            async with http.session() as session:
                with pytest.raises((NotListedError, RefusedRedirectError)) as caught:
                    await session.request(method, f"{first}/a?q=1", headers=headers, body=body, max_bytes=MANY)
    keeps_body = body is not None and (status in (307, 308) or (method == "PUT" and status != 303))
    assert caught.type is (RefusedRedirectError if keeps_body else NotListedError)
    assert asked == [f"{first}/a", f"{first}/c", *([] if keeps_body else [target.partition("?")[0]])]
    assert (set(names.asked), seen.requests) == ({"listed.example"}, [])


async def test_a_first_request_is_checked_also_by_a_proxy_and_by_another_name() -> None:
    proxy = ForwardProxy({})
    async with serve_connections(proxy) as port:
        check, asked = only("repository:good")
        http = build_guarded_http(proxy=Proxy.parse(f"http://127.0.0.1:{port}")).with_settings(
            check_hop=check, name_address=lambda url: f"repository:{url.rpartition('/')[2]}"
        )
        with pytest.raises(NotListedError):
            await http.get("https://a.example/evil?b", max_bytes=MANY)
        async with http.session() as session:
            with pytest.raises(NotListedError):
                await session.with_address_names(name_address=lambda url: url).get(
                    "https://a.example/good", max_bytes=MANY
                )
    assert asked == ["repository:evil", "https://a.example/good"]
    assert proxy.asked == []


async def test_a_check_comes_besides_those_that_are_there() -> None:
    (first, asked), (second, _) = only("http://127.0.0.1"), only("http://other")
    async with serve_site(RecordingHandler()) as url:
        http = build_guarded_http().with_settings(check_hop=first).with_settings(check_hop=second).with_settings()
        with pytest.raises(NotListedError):
            await http.get(url, max_bytes=MANY)
    assert len(asked) == 1


async def test_a_redirect_from_https_to_http_is_refused(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    seen = RecordingHandler()
    async with serve_site(seen) as plain, serve_site(redirect_to(plain), tls=tls) as url:
        with pytest.raises(RefusedRedirectError, match="from https to http"):
            await get_body(build_guarded_http(authorities=authority), url)
    assert seen.requests == []


async def test_a_credential_and_headers_stay_with_their_origin_and_do_not_come_back_by_a_detour() -> None:
    here, elsewhere, others = RecordingHandler(), RecordingHandler(), list[str]()

    async def detour(request: web.Request) -> web.StreamResponse:
        return await redirect_to(others[0])(request)

    headers = {"X-Key": "k", "Cookie": "c", "Accept": "text/plain"}
    async with (
        serve_site(elsewhere) as other,
        serve_site(route_paths(a=redirect_to("/b"), b=here, c=redirect_to(other), d=detour)) as url,
    ):
        credential = OriginCredential("Bearer hunter2", url)
        for path in "ac":
            await get_body(build_guarded_http(), f"{url}/{path}", headers=headers, credential=credential)
        async with serve_site(redirect_to(f"{url}/b")) as back:
            others.append(back)
            await get_body(build_guarded_http(), f"{url}/d", headers=headers, credential=credential)
    stays, returns = (request.headers for request in here.requests)
    leaves = elsewhere.requests[0].headers
    assert (stays["Authorization"], stays["X-Key"], stays["Cookie"]) == ("Bearer hunter2", "k", "c")
    assert not {"Authorization", "X-Key", "Cookie"} & {*leaves}
    assert leaves["Accept"] == "text/plain"
    assert not {"Authorization", "X-Key", "Cookie"} & {*returns}


async def test_a_credential_of_another_origin_is_sent_to_nobody() -> None:
    seen = RecordingHandler()
    async with serve_site(seen) as url:
        other_port = url[:-1] + str((int(url[-1]) + 1) % 10)
        await get_body(build_guarded_http(), url, credential=OriginCredential("Bearer hunter2", other_port))
        await get_body(
            build_guarded_http(),
            url,
            credential=OriginCredential("Bearer hunter2", url.replace("127.0.0.1", "localhost")),
        )
    assert all("Authorization" not in request.headers for request in seen.requests)
    assert "hunter2" not in repr(OriginCredential("Bearer hunter2", "https://example.com"))


# TLS and proxies.


async def test_a_private_authority_is_trusted_only_when_it_is_given(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    names = FakeDns({"tls.example": [["127.0.0.1"]], "other.example": [["127.0.0.1"]]})
    async with serve_site(RecordingHandler(), tls=tls) as url:
        port = port_of(url)
        assert (
            await get_body(build_guarded_http(names, authorities=authority), f"https://tls.example:{port}/") == b"here"
        )
        for http, host in (
            (build_guarded_http(names), "tls"),
            (build_guarded_http(names, authorities=authority), "other"),
        ):
            with pytest.raises(UntrustedCertificateError, match="has a certificate that is not trusted"):
                await get_body(http, f"https://{host}.example:{port}/")


async def test_tls_with_who_speaks_none_is_told() -> None:
    async with serve_site(RecordingHandler()) as url:
        with pytest.raises(UntrustedCertificateError, match="supports no common version of TLS"):
            await get_body(build_guarded_http(), url.replace("http:", "https:"))


@pytest.fixture
def elsewhere_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")


@pytest.mark.usefixtures("elsewhere_in_the_environment")
async def test_a_proxy_of_the_environment_is_not_used() -> None:
    async with serve_site(RecordingHandler()) as url:
        assert await get_body(build_guarded_http(), url) == b"here"


async def test_a_proxy_of_the_settings_connects_and_gets_its_password_and_no_credential(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    seen, names = RecordingHandler(), FakeDns()
    async with serve_site(RecordingHandler()) as plain, serve_site(seen, tls=tls) as secure:
        proxy = ForwardProxy({"plain.example": port_of(plain), "tls.example": port_of(secure)})
        async with serve_connections(proxy) as port:
            given = Proxy.parse(f"http://user:pass%40word@127.0.0.1:{port}")
            http = build_guarded_http(names, authorities=authority, proxy=given)
            assert await get_body(http, "http://plain.example/a") == b"here"
            credential = OriginCredential("Bearer hunter2", "https://tls.example")
            assert await get_body(http, "https://tls.example/b", credential=credential) == b"here"
    assert proxy.asked == ["GET http://plain.example/a HTTP/1.1", "CONNECT tls.example:443 HTTP/1.1"]
    assert proxy.users == ["Basic dXNlcjpwYXNzQHdvcmQ="] * 2
    assert seen.requests[0].headers["Authorization"] == "Bearer hunter2"
    assert "Proxy-Authorization" not in seen.requests[0].headers
    assert names.asked == []
    assert "dXNlc" not in repr(given)


async def test_a_proxy_does_not_reach_addresses_that_are_refused_and_is_itself_judged() -> None:
    proxy = ForwardProxy({})
    async with serve_connections(proxy) as port:
        given = Proxy.parse(f"http://127.0.0.1:{port}")
        for url in ("http://169.254.169.254/", "https://10.0.0.1/"):
            with pytest.raises(RefusedAddressError):
                await get_body(build_guarded_http(proxy=given), url)
        with pytest.raises(RefusedAddressError, match=r"127\.0\.0\.1 may not be reached"):
            await get_body(build_guarded_http(proxy=given, networks=AllowedNetworks()), "http://plain.example/")
    assert proxy.asked == []


async def test_hosts_that_are_left_out_are_reached_without_the_proxy() -> None:
    names = FakeDns({"in.cluster.local": [["127.0.0.1"]]})
    given = Proxy.parse("http://127.0.0.1:1", direct=["*.cluster.local", "exact.example"])
    async with serve_site(RecordingHandler()) as url:
        port = port_of(url)
        assert await get_body(build_guarded_http(names, proxy=given), f"http://in.cluster.local:{port}/") == b"here"
    assert given.bypasses("exact.example")
    assert not given.bypasses("not-exact.example")
    assert not given.bypasses("evilcluster.local")


async def test_a_proxy_that_refuses_or_is_not_there_is_told_from_the_server() -> None:
    async with serve_connections(ForwardProxy({}, refuses=403)) as port:
        with pytest.raises(HostUnreachableError, match="a proxy that refuses the connection with status 403"):
            await get_body(build_guarded_http(proxy=Proxy.parse(f"http://127.0.0.1:{port}")), "https://tls.example/")
    with pytest.raises(HostUnreachableError, match="a proxy that cannot be connected to"):
        await get_body(build_guarded_http(proxy=Proxy.parse(f"http://127.0.0.1:{port}")), "https://tls.example/")


@pytest.mark.parametrize("text", ["socks5://a", "proxy:3128", "http://", "http://a/path", "http://u:hunter2@/"])
def test_a_proxy_that_is_none_is_a_mistake_that_is_not_shown(text: str) -> None:
    with pytest.raises(ValueError, match="expected a proxy such as") as failure:
        Proxy.parse(text)
    assert "hunter2" not in str(failure.value)
