"""Files from their URLs on real servers: which bytes come, what is refused, what is told, who sees a credential."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge_resolution import MAX_CONTENT_BYTES, Digest, Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution.network import AllowedNetworks
from tests.resolution.http_resolution import (
    TASK,
    QuickClock,
    build_engine,
    build_fetch,
    expect_resolution_error,
    resolve,
)
from tests.resolution.network.http_servers import (
    FakeDns,
    ForwardProxy,
    RecordingHandler,
    build_guarded_http,
    certificate,
    redirect_to,
    respond_with_bytes,
    route_paths,
    serve_connections,
    serve_site,
)
from tests.resolution.servers.tinyproxy import tinyproxy

pytestmark = pytest.mark.anyio

HTTP = HttpResolver()
WEB = Requester("web")
PLAIN = {"allow-plain-http-credentials": "true"}
USER = {"http-username": "ada", "http-password-secret": "login"}
TOKEN = {"http-token-secret": "login"}
SECRETS = {"login": {"password": "hunter2\n", "token": "t0ken", "other": "s3same"}}


async def test_a_file_comes_byte_for_byte_with_its_place_and_its_digest() -> None:
    async with serve_site(RecordingHandler(TASK)) as url:
        found = await resolve(HTTP, {"url": f"{url}/a/task.yaml?ref=main"})
    assert found.data == TASK
    assert (found.source.uri, found.source.digest) == (f"{url}/a/task.yaml", {"sha256": Digest.of(TASK).hex})
    assert found.pinned == {"url": f"{url}/a/task.yaml?ref=main", "digest": str(Digest.of(TASK))}


# Digests.


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_digest_that_fits_passes_and_names_the_content_for_ever(algorithm: str) -> None:
    digest = str(Digest.of(TASK, algorithm))
    async with serve_site(RecordingHandler(TASK)) as url:
        assert (await resolve(HTTP, {"url": url, "digest": digest})).pinned["digest"] == digest
    assert HTTP.is_pinned({"url": "https://a", "digest": digest})
    assert not HTTP.is_pinned({"url": "https://a"})


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
async def test_a_digest_that_does_not_fit_is_refused(algorithm: str) -> None:
    async with serve_site(RecordingHandler(TASK)) as url:
        error = await expect_resolution_error(HTTP, {"url": url, "digest": str(Digest.of(b"other", algorithm))})
    assert error.reason is Reason.DIGEST_MISMATCH


DIGESTS = {
    "sha1": (f"sha1:{'a' * 40}", "expected algorithm sha256 or sha512, found 'sha1'"),
    "short": (f"sha256:{'a' * 63}", "expected 64 hexadecimal digits in lower case after sha256:, found 63"),
    "long": (f"sha512:{'a' * 129}", "expected 128 hexadecimal digits in lower case after sha512:, found 129"),
    "no colon": ("a" * 64, "found no colon"),
    "no digits": (f"sha256:{'g' * 64}", "expected 64 hexadecimal digits"),
}


@pytest.mark.parametrize(("digest", "problem"), DIGESTS.values(), ids=DIGESTS)
async def test_what_is_no_digest_is_refused_in_its_own_words(digest: str, problem: str) -> None:
    error = await expect_resolution_error(HTTP, {"url": "https://example.com/a", "digest": digest})
    assert error.reason is Reason.INVALID_PARAMETERS
    assert problem in error.message


# Statuses.

STATUSES = {
    401: (Reason.AUTHENTICATION_REQUIRED, "requires a credential, but the request had none"),
    403: (Reason.AUTHENTICATION_REQUIRED, "forbids this without a credential"),
    400: (Reason.INVALID_PARAMETERS, "rejects the request as invalid"),
    404: (Reason.NOT_FOUND, "does not exist or is hidden"),
    405: (Reason.DENIED, "refuses the request"),
    406: (Reason.UNSUPPORTED_CONTENT, "has no content of a supported media type"),
    409: (Reason.DENIED, "refuses the request"),
    418: (Reason.DENIED, "refuses the request"),
    422: (Reason.INVALID_PARAMETERS, "rejects the request as invalid"),
    425: (Reason.UNREACHABLE, "requests a later attempt"),
    410: (Reason.NOT_FOUND, "does not exist any more"),
    429: (Reason.RATE_LIMITED, "limits the rate of requests"),
    451: (Reason.DENIED, "refuses the content for legal reasons"),
    500: (Reason.UNREACHABLE, "reports an internal error"),
    503: (Reason.UNREACHABLE, "is temporarily unavailable"),
    206: (Reason.NOT_FOUND, "returns an unexpected response"),
    304: (Reason.NOT_FOUND, "returns an unexpected response"),
}


@pytest.mark.parametrize(("status", "reason", "told"), [(status, *each) for status, each in STATUSES.items()])
async def test_statuses_are_told_apart(status: int, reason: Reason, told: str) -> None:
    async with serve_site(RecordingHandler(b"" if status == 304 else TASK, status=status)) as url:
        error = await expect_resolution_error(HTTP, {"url": f"{url}/a?token=hunter2"})
    assert (error.reason, error.message) == (reason, f"{url}/a {told} (status {status})")


@pytest.mark.parametrize(("status", "told"), [(401, "rejects the credential"), (403, "forbids this for")])
async def test_a_credential_that_is_not_enough_is_told_from_none(status: int, told: str) -> None:
    async with serve_site(RecordingHandler(status=status)) as url:
        error = await expect_resolution_error(HTTP, {"url": url, **USER}, PLAIN, secrets=SECRETS)
    assert error.reason is Reason.DENIED
    assert told in error.message


@pytest.mark.parametrize(("status", "times"), [(401, 1), (403, 1), (404, 1), (429, 3), (500, 3), (503, 3)])
async def test_only_what_may_pass_is_asked_again(status: int, times: int) -> None:
    seen, clock = RecordingHandler(status=status, headers={"Retry-After": "7"} if status == 429 else None), QuickClock()
    async with serve_site(seen) as url:
        with pytest.raises(ResolutionError):
            await build_engine(HTTP, clock).resolve(Reference("http", {"url": url}), WEB)
    assert len(seen.requests) == times
    assert (min(clock.slept, default=0) >= 7) == (status == 429)


async def test_a_refusal_that_says_when_to_come_back_is_a_limit() -> None:
    async with serve_site(RecordingHandler(status=403, headers={"Retry-After": "30"})) as url:
        error = await expect_resolution_error(HTTP, {"url": url})
    assert (error.reason, error.retry_after_seconds) == (Reason.RATE_LIMITED, 30.0)


async def test_a_large_page_with_an_error_is_that_error() -> None:
    async with serve_site(RecordingHandler(b"x" * (4 << 20), status=404)) as url:
        assert (await expect_resolution_error(HTTP, {"url": url})).reason is Reason.NOT_FOUND


async def test_a_page_to_log_in_is_no_definition() -> None:
    async with serve_site(RecordingHandler(b"<html>", headers={"Content-Type": "text/html; charset=utf-8"})) as url:
        error = await expect_resolution_error(HTTP, {"url": url})
    assert (error.reason, error.message) == (
        Reason.UNSUPPORTED_CONTENT,
        f"{url}/ is a web page (text/html); expected YAML or JSON",
    )


# Sizes.


async def test_as_much_as_a_definition_may_have_passes_and_one_byte_more_does_not() -> None:
    async with serve_site(
        route_paths(
            exact=RecordingHandler(b"x" * MAX_CONTENT_BYTES), more=RecordingHandler(b"x" * (MAX_CONTENT_BYTES + 1))
        )
    ) as url:
        assert len((await resolve(HTTP, {"url": f"{url}/exact"})).data) == MAX_CONTENT_BYTES
        error = await expect_resolution_error(HTTP, {"url": f"{url}/more"})
    assert (error.reason, error.message) == (Reason.TOO_LARGE, f"{url}/more sends more than {MAX_CONTENT_BYTES} bytes")


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        await writer.drain()


BODIES = {
    "endless": (endless, Reason.TOO_LARGE),
    "bomb": (
        respond_with_bytes(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"0" * (64 << 20))),
        Reason.TOO_LARGE,
    ),
    "lying": (respond_with_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{}"), Reason.UNREACHABLE),
}


@pytest.mark.parametrize(("talk", "reason"), BODIES.values(), ids=BODIES)
async def test_bodies_that_do_not_end_or_lie_are_bounded(talk: Any, reason: Reason) -> None:
    async with serve_connections(talk) as port:
        assert (await expect_resolution_error(HTTP, {"url": f"http://127.0.0.1:{port}"})).reason is reason


# Parameters.

NO_URLS = ["ftp://example.com/a", "file:///etc/passwd", "gopher://a/", "data:,a", "javascript:alert(1)", "http:///a"]


@pytest.mark.parametrize("url", [*NO_URLS, "http://u:hunter2@example.com/", "http://2130706433/", "example.com/a"])
def test_a_url_that_is_none_is_refused_before_anything_is_asked(url: str) -> None:
    with pytest.raises(ResolutionError, match="parameter 'url' cannot be used: ") as failure:
        HTTP.validate({"url": url}, {})
    assert failure.value.reason is Reason.INVALID_PARAMETERS
    assert "hunter2" not in failure.value.message


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no url": ({"url": None}, "parameter 'url': expected text"),
    "a user alone": ({"http-username": "ada"}, "'http-username': expected also parameter 'http-password-secret'"),
    "a Secret alone": (
        {"http-password-secret": "a"},
        "'http-password-secret': expected also parameter 'http-username'",
    ),
    "an empty user": ({**USER, "http-username": ""}, "parameter 'http-username': expected a value, found none"),
    "an empty Secret": (
        {**USER, "http-password-secret": " "},
        "parameter 'http-password-secret': expected a value, found none",
    ),
    "a key alone": ({"http-token-secret-key": "a"}, "expected also parameter 'http-token-secret'"),
    "two credentials": ({**USER, **TOKEN}, "expected a token or a user and a password, found both"),
    "a colon": ({**USER, "http-username": "a:b"}, "expected a name without a colon"),
    "a password": ({**USER, "http-password-secret": "Hunter2!"}, "expected the name of a Secret"),
    "a list": ({"digest": ["a"]}, "parameter 'digest': expected text"),
    "a misspelt one": ({"usrname": "a"}, "parameter 'usrname': no such parameter; expected one of url, http-username"),
}


@pytest.mark.parametrize(("params", "problem"), MISTAKES.values(), ids=MISTAKES)
def test_parameters_that_do_not_go_together_are_refused_in_their_own_words(
    params: Mapping[str, Any], problem: str
) -> None:
    with pytest.raises(ResolutionError) as failure:
        HTTP.validate({"url": "https://example.com/a", **params}, {})
    assert failure.value.reason is Reason.INVALID_PARAMETERS
    assert problem in failure.value.message
    assert "Hunter2!" not in failure.value.message


def test_a_reference_without_a_url_is_refused() -> None:
    with pytest.raises(ResolutionError, match="parameter 'url': expected the address of a file, found none"):
        HTTP.validate({}, {})


def test_an_address_has_one_spelling_for_policies_and_the_cache() -> None:
    params = HTTP.validate({"url": "HTTPS://Example.COM:443/team/%2e%2e/other#part"}, {})
    assert params["url"] == "https://example.com/other"
    assert HTTP.validate({"url": "http://example.com?a=b%26c"}, {})["url"] == "http://example.com/?a=b%26c"
    assert HTTP.source_uri({"url": "https://example.com/a?token=x"}, {}) == "https://example.com/a"


def test_a_path_leads_to_another_file_of_the_same_server() -> None:
    params = {"url": "https://example.com/boxes/a.yaml?x=y", "digest": "d", **TOKEN}
    assert HTTP.resolve_relative(params, "../b.yaml") == {"url": "https://example.com/b.yaml", **TOKEN}
    encoded = {"url": "https://example.com/a%20b/c.yaml"}
    assert HTTP.resolve_relative(encoded, "d%2Ee.yaml")["url"] == "https://example.com/a%20b/d%2Ee.yaml"
    with pytest.raises(ResolutionError, match="expected a path within the source"):
        HTTP.resolve_relative(params, "../../b.yaml")


# Credentials.


@pytest.mark.parametrize(
    ("params", "sent"),
    [
        (USER, "Basic YWRhOmh1bnRlcjI="),
        ({**USER, "http-password-secret-key": "other"}, "Basic YWRhOnMzc2FtZQ=="),
        (TOKEN, "Bearer t0ken"),
    ],
    ids=["password", "another key", "token"],
)
async def test_a_credential_comes_from_the_requesters_secret(params: Mapping[str, str], sent: str) -> None:
    seen = RecordingHandler(TASK)
    async with serve_site(seen) as url:
        await resolve(HTTP, {"url": url, **params}, PLAIN, secrets=SECRETS)
    assert seen.requests[0].headers["Authorization"] == sent


@pytest.mark.parametrize(
    ("params", "secrets"),
    [
        (USER, {}),
        ({**USER, "http-password-secret-key": "none"}, SECRETS),
        (USER, {"login": {"password": "\n"}}),
        (TOKEN, {"login": {"token": "hunter2\nX-Header: y"}}),
    ],
    ids=["no Secret", "no key", "an empty value", "two lines"],
)
async def test_a_credential_that_is_not_there_is_an_error_without_its_name_or_value(
    params: Mapping[str, str], secrets: Mapping[str, Mapping[str, str]]
) -> None:
    seen = RecordingHandler(TASK)
    async with serve_site(seen) as url:
        error = await expect_resolution_error(HTTP, {"url": url, **params}, PLAIN, secrets=secrets)
    assert (error.reason, seen.requests) == (Reason.AUTHENTICATION_REQUIRED, [])
    assert "login" not in error.message
    assert "hunter2" not in error.message


REFUSALS: dict[str, tuple[dict[str, str], dict[str, str], str]] = {
    "without TLS": ({}, {}, "set 'allow-plain-http-credentials'"),
    "not a host of the operator's": (
        {**PLAIN, "credential-hosts": "example.com"},
        {},
        "setting 'credential-hosts' does not list it",
    ),
    "bound to another host": (PLAIN, {"host": "example.com"}, "the Secret is bound to another host than 127.0.0.1:"),
}


@pytest.mark.parametrize(("settings", "more", "problem"), REFUSALS.values(), ids=REFUSALS)
async def test_a_credential_is_not_shown_to_whom_it_is_not_for(
    settings: Mapping[str, str], more: Mapping[str, str], problem: str
) -> None:
    seen = RecordingHandler(TASK)
    secrets = {"login": {**SECRETS["login"], **more}}
    async with serve_site(seen) as url:
        error = await expect_resolution_error(HTTP, {"url": url, **USER}, settings, secrets=secrets)
    assert (error.reason, seen.requests) == (Reason.DENIED, [])
    assert problem in error.message


@pytest.mark.parametrize(
    ("written", "sent"), [("", "sig=a%2Bb%3D&se=2030"), ("?ref=main", "ref=main&sig=a%2Bb%3D&se=2030")]
)
async def test_a_credential_of_the_query_comes_from_a_secret_and_is_in_no_record(written: str, sent: str) -> None:
    seen = RecordingHandler(TASK)
    secrets = {"sas": {"query": "?sig=a%2Bb%3D&se=2030\n"}}
    async with serve_site(seen) as url:
        params = {"url": f"{url}/a{written}", "http-query-secret": "sas"}
        found = await resolve(HTTP, params, PLAIN, secrets=secrets)
        denied = await expect_resolution_error(HTTP, params, secrets=secrets)
    assert [request.query_string for request in seen.requests] == [sent]
    assert "a%2Bb" not in repr((found.source, found.annotations, found.pinned, found.found_at)) + denied.message
    assert denied.reason is Reason.DENIED  # without TLS


@pytest.mark.parametrize("value", ["?", "sig=a b", "sig=a#b", "sig=\u00e4"])
async def test_what_is_no_part_of_a_query_is_not_sent(value: str) -> None:
    seen = RecordingHandler(TASK)
    async with serve_site(seen) as url:
        params = {"url": url, "http-query-secret": "sas"}
        error = await expect_resolution_error(HTTP, params, PLAIN, secrets={"sas": {"query": value}})
    assert (error.reason, seen.requests) == (Reason.AUTHENTICATION_REQUIRED, [])
    assert "sig=a" not in error.message


async def test_a_credential_does_not_follow_a_redirect_to_another_host() -> None:
    seen = RecordingHandler(TASK)
    async with serve_site(seen) as other, serve_site(redirect_to(f"{other}/b")) as url:
        await resolve(HTTP, {"url": url, **USER}, PLAIN, secrets=SECRETS)
    assert "Authorization" not in seen.requests[0].headers


async def test_where_a_redirect_led_is_told_without_its_query() -> None:
    async with serve_site(RecordingHandler(TASK)) as other, serve_site(redirect_to(f"{other}/b?token=hunter2")) as url:
        found = await resolve(HTTP, {"url": url}, PLAIN)
    assert (found.source.uri, found.found_at) == (f"{url}/", f"{other}/b")


async def test_a_redirect_to_what_may_not_be_reached_is_denied_without_its_place() -> None:
    async with serve_site(redirect_to("http://169.254.169.254/latest")) as url:
        error = await expect_resolution_error(HTTP, {"url": url})
    message = f"{url}/ redirects to an address that may not be reached: its network is link-local"
    assert (error.reason, error.message) == (Reason.DENIED, message)


async def test_redirects_in_a_circle_end() -> None:
    async with serve_site(redirect_to("/")) as url:
        error = await expect_resolution_error(HTTP, {"url": url})
    assert (error.reason, "redirects more than 5 times" in error.message) == (Reason.DENIED, True)


async def forever_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(1000):
        writer.write(b"x" * 65536)
        await writer.drain()


async def test_headers_above_the_limit_are_too_large_at_once() -> None:
    connections = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await forever_headers(reader, writer)

    async with serve_connections(count) as port:
        with pytest.raises(ResolutionError, match="sends headers above the limit of") as failure:
            await build_engine(HTTP, QuickClock()).resolve(Reference("http", {"url": f"http://127.0.0.1:{port}"}), WEB)
    assert (failure.value.reason, connections) == (Reason.TOO_LARGE, 1)


async def test_a_body_above_the_limit_is_too_large_at_once() -> None:
    seen = RecordingHandler(b"x" * (2 << 20))
    async with serve_site(seen) as url:
        with pytest.raises(ResolutionError) as failure:
            await build_engine(HTTP, QuickClock()).resolve(Reference("http", {"url": url}), WEB)
    assert (failure.value.reason, len(seen.requests)) == (Reason.TOO_LARGE, 1)


@pytest.mark.parametrize("kind", ["image/png", "application/zip", "application/javascript", "text/css", "nonsense"])
async def test_a_media_type_of_no_definition_is_refused_before_its_body(kind: str) -> None:
    seen = RecordingHandler(TASK, headers={"Content-Type": kind})
    async with serve_site(seen) as url:
        with pytest.raises(ResolutionError) as failure:
            await build_engine(HTTP, QuickClock()).resolve(Reference("http", {"url": url}), WEB)
    assert failure.value.message.startswith(f"{url}/: expected YAML or JSON, found media type '{kind}'; ")
    assert (failure.value.reason, len(seen.requests)) == (Reason.UNSUPPORTED_CONTENT, 1)


@pytest.mark.parametrize(
    "kind",
    [
        "application/yaml", "application/x-yaml", "text/yaml", "text/plain; charset=utf-8", "application/octet-stream",
        "binary/octet-stream", "application/json", "application/vnd.example.v1+yaml", "Text/X-YAML",
    ],
)  # fmt: skip
async def test_the_media_types_of_yaml_json_and_plain_files_are_accepted(kind: str) -> None:
    async with serve_site(RecordingHandler(TASK, headers={"Content-Type": kind})) as url:
        assert (await resolve(HTTP, {"url": url})).data == TASK


# Whom it reaches.

PRIVATE = ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "[fd00::1]", "100.64.0.1"]


@pytest.mark.parametrize("host", [*PRIVATE, "private.example"])
async def test_private_addresses_are_denied_until_a_policy_lists_them(host: str) -> None:
    names = FakeDns({"private.example": [["10.0.0.1", "192.168.0.1"]]})
    error = await expect_resolution_error(
        HTTP, {"url": f"http://{host}/a"}, http=build_guarded_http(names, networks=AllowedNetworks())
    )
    assert error.reason is Reason.DENIED
    assert "may not be reached: its network is" in error.message
    assert "10.0.0.1" not in error.message


async def test_a_private_authority_is_a_setting(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    async with serve_site(RecordingHandler(TASK), tls=tls) as url:
        assert (await resolve(HTTP, {"url": url}, {"ca-certificates": authority})).data == TASK
        error = await expect_resolution_error(HTTP, {"url": url})
    assert (error.reason, error.message) == (
        Reason.DENIED,
        f"{url}/ has a certificate that is not trusted; add its certificate authority to setting 'ca-certificates'",
    )


async def test_a_server_without_tls_is_told_how_it_is_asked_then() -> None:
    async with serve_site(RecordingHandler(TASK)) as url:
        error = await expect_resolution_error(HTTP, {"url": url.replace("http:", "https:")})
    assert error.reason is Reason.DENIED
    assert error.message.endswith("supports no common version of TLS; use an http:// address for a server without TLS")


async def test_a_proxy_is_a_setting() -> None:
    async with serve_site(RecordingHandler(TASK)) as url:
        proxy = ForwardProxy({"example.com": int(url.rpartition(":")[2])})
        async with serve_connections(proxy) as port:
            settings = {"proxy": f"http://user:hunter2@127.0.0.1:{port}", "no-proxy": "127.0.0.1"}
            assert (await resolve(HTTP, {"url": "http://example.com/a"}, settings)).data == TASK
            assert (await resolve(HTTP, {"url": url}, settings)).data == TASK
    assert proxy.asked == ["GET http://example.com/a HTTP/1.1"]


async def test_a_real_proxy_connects_with_and_without_tls_for_who_has_its_password(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    with tinyproxy() as proxy:
        async with serve_site(RecordingHandler(TASK)) as plain, serve_site(RecordingHandler(TASK), tls=tls) as secure:
            for url in (plain, secure):
                settings = {"proxy": proxy.url, "ca-certificates": authority}
                assert (await resolve(HTTP, {"url": f"{url}/a.yaml"}, settings)).data == TASK
                error = await expect_resolution_error(
                    HTTP, {"url": url}, {**settings, "proxy": f"http://127.0.0.1:{proxy.port}"}
                )
                assert "407" in error.message
        assert f"GET {plain}/a.yaml HTTP/1.1" in proxy.list_requests()
        assert f"CONNECT {secure.removeprefix('https://')} HTTP/1.1" in proxy.list_requests()


@pytest.mark.parametrize("setting", ["proxy", "ca-certificates"])
async def test_a_setting_that_cannot_be_used_is_named_and_not_shown(setting: str) -> None:
    error = await expect_resolution_error(HTTP, {"url": "https://example.com"}, {setting: "hunter2"})
    assert error.reason is Reason.INVALID_CONFIGURATION
    assert setting in error.message
    assert "hunter2" not in error.message


async def test_a_resolution_that_is_cancelled_leaves_no_connection() -> None:
    arrived = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()

    before = asyncio.all_tasks()
    async with serve_connections(talk) as port:
        task = asyncio.create_task(HTTP.resolve(build_fetch(HTTP, {"url": f"http://127.0.0.1:{port}"})))
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.all_tasks() == before


async def test_the_engine_resolves_by_it() -> None:
    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=TASK)

    async with serve_site(serve) as url:
        outcome = await build_engine(HTTP, QuickClock()).resolve(Reference("http", {"url": url}), WEB)
    assert (outcome.object["kind"], outcome.attempts) == ("Task", 1)
