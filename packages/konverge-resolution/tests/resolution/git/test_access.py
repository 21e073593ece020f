"""Who is shown a credential, and who never: over HTTP with and without TLS, and over redirects."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.resolvers.git import GitResolver, repository
from konverge_resolution._internal.resolvers.git.process_runner import run_process
from konverge_resolution.local_engine import LocalSetup, local_engine
from tests.client.certificates import CertificateAuthority
from tests.resolution.git.sample_repositories import (
    Loopback,
    SampleRepositories,
    build_fetch,
    list_files,
    read_files,
    resolve,
)
from tests.resolution.network.http_servers import ForwardProxy
from tests.resolution.network.http_servers import serve_connections as talking
from tests.resolution.servers.git import GitServer, git_server
from tests.resolution.servers.git_faults import fault_server
from tests.resolution.servers.tinyproxy import tinyproxy

pytestmark = pytest.mark.anyio

TOKEN = "sesame-open"
SECRETS = {"mine": {"token": TOKEN.encode()}, "wrong": {"token": b"banana"}, "empty": {"token": b""},
           "bound": {"token": TOKEN.encode(), "host": b"other.test"}}  # fmt: skip
PLAIN = {"allow-plain-http-credentials": "true"}
MINE = {"gitToken": "mine"}


@pytest.fixture
def private(server: GitServer) -> GitServer:
    server.credentials["boxes.git"] = ("git", TOKEN)
    return server


async def expect_resolution_error(
    server: GitServer, folder: Path, params: Mapping[str, str], settings: Mapping[str, str] = PLAIN, **more: Any
) -> ResolutionError:
    given = {"url": server.url("boxes.git"), "pathInRepo": "box.yaml", **params}
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, given, settings=settings, secrets=SECRETS, **more))
    assert TOKEN not in str(caught.value)
    return caught.value


@pytest.mark.slow
async def test_a_private_repository_is_read_with_a_token(private: GitServer, folder: Path) -> None:
    fetch = build_fetch(
        folder, {"url": private.url("boxes.git"), "pathInRepo": "box.yaml", **MINE}, settings=PLAIN, secrets=SECRETS
    )
    resolved = await resolve(fetch)
    assert resolved.data.startswith(b"apiVersion")
    assert TOKEN not in repr(resolved.source) + repr(dict(resolved.annotations)) + repr(dict(resolved.pinned))


@pytest.mark.slow
async def test_the_user_of_a_token_can_be_chosen(private: GitServer, folder: Path) -> None:
    private.credentials["boxes.git"] = ("x-token-auth", TOKEN)
    params = {"url": private.url("boxes.git"), "pathInRepo": "box.yaml", **MINE, "gitUser": "x-token-auth"}
    assert (await resolve(build_fetch(folder, params, settings=PLAIN, secrets=SECRETS))).data


@pytest.mark.slow
async def test_no_repository_no_token_and_a_wrong_token_have_three_reasons(private: GitServer, folder: Path) -> None:
    missing = await expect_resolution_error(private, folder, {"url": private.url("none.git")})
    without = await expect_resolution_error(private, folder, {})
    wrong = await expect_resolution_error(private, folder, {"gitToken": "wrong"})
    assert [error.reason for error in (missing, without, wrong)] == [
        Reason.NOT_FOUND,
        Reason.AUTHENTICATION_REQUIRED,
        Reason.DENIED,
    ]
    assert "does not exist" in missing.message
    assert "the request had none" in without.message
    assert "rejects the credential" in wrong.message


async def test_a_missing_secret_and_a_missing_key_read_the_same(private: GitServer, folder: Path) -> None:
    errors = [
        await expect_resolution_error(private, folder, {"gitToken": "none"}),
        await expect_resolution_error(private, folder, {**MINE, "gitTokenKey": "none"}),
    ]
    assert len({(error.reason, error.message) for error in errors}) == 1
    assert private.seen == []


async def test_credentials_go_to_no_host_that_they_are_not_for(private: GitServer, folder: Path) -> None:
    # CVE-2026-40161: whoever makes a request chose where a token was sent.
    bound = await expect_resolution_error(private, folder, {"gitToken": "bound"})
    not_permitted = await expect_resolution_error(
        private, folder, MINE, {**PLAIN, "credential-hosts": "github.com, gitlab.com"}
    )
    without_tls = await expect_resolution_error(private, folder, MINE, {})
    assert [error.reason for error in (bound, not_permitted, without_tls)] == [Reason.DENIED] * 3
    assert private.seen == []


async def test_a_redirect_is_not_followed_so_nobody_else_sees_the_credential(
    private: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    with git_server(samples.root) as other:
        private.redirects["boxes.git"] = other.url("").rstrip("/")
        error = await expect_resolution_error(private, folder, MINE)
        assert other.seen == []
    assert (error.reason, "redirects to another address" in error.message) == (Reason.DENIED, True)
    assert {seen.authorization for seen in private.seen} == {"Basic Z2l0OnNlc2FtZS1vcGVu"}


async def test_a_server_that_repeats_the_credential_does_not_get_it_into_a_message(folder: Path) -> None:
    with fault_server() as faults:
        params = {"url": faults.url("echo"), "pathInRepo": "box.yaml", **MINE}
        with pytest.raises(ResolutionError) as caught:
            await resolve(build_fetch(folder, params, settings=PLAIN, secrets=SECRETS))
    assert "Basic" not in caught.value.message
    assert TOKEN not in caught.value.message


async def test_a_credential_is_in_no_argument_and_no_file(
    private: GitServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message: list[str] = []

    async def watched(arguments: Any, *, folder: Path, **more: Any) -> Any:
        finished = await run_process(arguments, folder=folder, **more)
        message.extend([*arguments, *read_files(folder)])
        return finished

    monkeypatch.setattr(repository, "run_process", watched)
    params = {"url": private.url("boxes.git"), "pathInRepo": "box.yaml", **MINE}
    await resolve(build_fetch(folder, params, settings=PLAIN, secrets=SECRETS))
    assert "fetch" in message
    assert not [text for text in message if TOKEN in text or "Z2l0OnNlc2FtZS1vcGVu" in text]


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"gitToken": "absent"}, "parameter 'gitToken' or parameter 'gitTokenKey': "),
        ({"gitToken": "mine", "gitTokenKey": "absent"}, "parameter 'gitToken' or parameter 'gitTokenKey': "),
    ],
)
async def test_a_secret_that_is_not_there_has_the_parameters_named_that_name_it(
    private: GitServer, folder: Path, params: Mapping[str, str], named: str
) -> None:
    error = await expect_resolution_error(private, folder, params)
    assert (error.reason, error.message.startswith(named)) == (Reason.AUTHENTICATION_REQUIRED, True)
    assert "absent" not in error.message


@pytest.fixture(scope="session")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(scope="session")
def tls_server(
    samples: SampleRepositories, authority: CertificateAuthority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[GitServer]:
    pair = authority.issue(host="git.test")
    held = tmp_path_factory.mktemp("tls") / "pair.pem"
    held.write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(held)
    with git_server(samples.root, context) as server:
        yield server


@pytest.mark.slow
async def test_an_authority_of_ones_own_is_trusted_when_it_is_configured(
    tls_server: GitServer, authority: CertificateAuthority, folder: Path
) -> None:
    tls_server.credentials["boxes.git"] = ("git", TOKEN)
    params = {"url": tls_server.url("boxes.git"), "pathInRepo": "box.yaml", **MINE}
    settings = {"ca-certificates": authority.certificate.decode()}
    assert (await resolve(build_fetch(folder, params, settings=settings, secrets=SECRETS))).data
    assert list_files(folder) == ["lock"]


@pytest.mark.slow
async def test_without_a_cluster_certificates_are_trusted_by_git_as_by_whoever_asks_over_http(
    tls_server: GitServer, authority: CertificateAuthority
) -> None:
    tls_server.credentials.clear()
    reference = Reference("git", {"url": tls_server.url("boxes.git", host="127.0.0.1"), "pathInRepo": "box.yaml"})
    others = CertificateAuthority().certificate.decode()
    for settings in ({}, {"git": {"ca-certificates": others}}):  # those of a resolver add to those of the setup
        setup = LocalSetup(settings, certificates=authority.certificate.decode(), networks=("127.0.0.0/8",))
        async with local_engine([GitResolver()], setup) as engine:
            assert (await engine.resolve(reference, Requester("web"))).resolved.data


async def test_a_certificate_that_is_not_trusted_sees_no_credential(tls_server: GitServer, folder: Path) -> None:
    tls_server.reset_counters()
    error = await expect_resolution_error(tls_server, folder, MINE, {})
    assert error.reason is Reason.DENIED
    assert "has a certificate that is not trusted; add its certificate authority" in error.message
    assert tls_server.seen == []


async def test_a_server_without_tls_is_told_how_it_is_asked_then(private: GitServer, folder: Path) -> None:
    error = await expect_resolution_error(
        private, folder, {"url": private.url("boxes.git").replace("http:", "https:")}, {}
    )
    assert error.reason is Reason.DENIED
    assert error.message.endswith("supports no common version of TLS; use an http:// address for a server without TLS")


async def test_a_certificate_for_another_name_is_not_trusted(
    tls_server: GitServer, authority: CertificateAuthority, folder: Path
) -> None:
    settings = {"ca-certificates": authority.certificate.decode()}
    error = await expect_resolution_error(
        tls_server, folder, {"url": tls_server.url("boxes.git", host="other.test")}, settings
    )
    assert "certificate" in error.message


async def test_a_proxy_of_the_settings_connects_in_place_of_git(private: GitServer, folder: Path) -> None:
    forward = ForwardProxy({"git.test": private.port})
    async with talking(forward) as port:
        settings = {**PLAIN, "proxy": f"http://me:pass%40word@proxy.test:{port}"}
        params = {"url": private.url("boxes.git"), "pathInRepo": "box.yaml", **MINE}
        asked = Loopback(denied=frozenset({"git.test"}))
        assert (await resolve(build_fetch(folder, params, settings=settings, secrets=SECRETS, addresses=asked))).data
    assert {host for host, _ in asked.asked} == {"proxy.test"}
    assert set(forward.users) == {"Basic " + base64.b64encode(b"me:pass@word").decode()}


async def test_a_real_proxy_connects_in_place_of_git(private: GitServer, folder: Path) -> None:
    url = private.url("boxes.git", host="127.0.0.1")
    with tinyproxy() as proxy:
        fetch = build_fetch(
            folder,
            {"url": url, "pathInRepo": "box.yaml", **MINE},
            settings={**PLAIN, "proxy": proxy.url},
            secrets=SECRETS,
        )
        assert (await resolve(fetch)).data
        assert f"GET {url}/info/refs?service=git-upload-pack HTTP/1.1" in proxy.list_requests()


async def test_an_address_in_a_url_is_judged_with_a_proxy_too(private: GitServer, folder: Path) -> None:
    settings = {**PLAIN, "proxy": "http://proxy.test:1"}
    asked = Loopback(denied=frozenset({"127.0.0.1"}))
    params = {"url": private.url("boxes.git", host="127.0.0.1"), "pathInRepo": "box.yaml"}
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, params, settings=settings, addresses=asked))
    assert caught.value.reason is Reason.DENIED
    assert private.seen == []
