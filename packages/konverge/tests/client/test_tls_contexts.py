"""Certificates that are renewed on disk: new connections use them without a restart."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from konverge._internal.client.credentials import Identity
from konverge._internal.client.tls_contexts import TlsContexts
from konverge.client import ClusterConfig, HttpTransport, TlsConfig, load_in_cluster
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError, UntrustedServerError
from tests.client.certificates import CertificateAuthority, KeyPair
from tests.client.servers import Servers

pytestmark = pytest.mark.anyio

OLD, NEW = CertificateAuthority("old"), CertificateAuthority("new")
SECONDS = 9.0


@pytest.fixture
def anyio_backend() -> str:
    """Use real time: there are sockets and threads."""
    return "asyncio"


class StandingClock(SystemClock):
    """A clock that a test sets."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Files:
    """A kubeconfig's certificates in files."""

    def __init__(self, folder: Path, authority: bytes, own: KeyPair | None = None) -> None:
        self.authority, self.certificate, self.key = (folder / name for name in ("ca.crt", "ann.crt", "ann.key"))
        self.has_own = own is not None
        self.write(authority, own)

    def write(self, authority: bytes | None = None, own: KeyPair | None = None) -> None:
        if authority is not None:
            self.authority.write_bytes(authority)
        if own is not None:
            self.certificate.write_bytes(own.certificate)
            self.key.write_bytes(own.key)

    def tls(self) -> TlsConfig:
        own = (self.certificate, self.key) if self.has_own else (None, None)
        return TlsConfig(authority_file=self.authority, certificate_file=own[0], key_file=own[1]).reload()


def config(server: str, tls: TlsConfig) -> ClusterConfig:
    return ClusterConfig(server, 'context "here" of config', tls=tls)


async def who(request: web.Request) -> web.Response:
    """Return the user and the number of the connection."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert") or {}
    subject = dict(entry for (entry,) in certificate.get("subject", ()))
    return web.Response(text=subject.get("commonName", "anonymous"))


async def ask(transport: HttpTransport) -> str:
    return (await transport.request("POST", "/", timeout_seconds=SECONDS)).body.decode()


async def ask_by_a_stream(transport: HttpTransport) -> str:
    async with transport.stream("GET", "/", connect_timeout_seconds=SECONDS) as stream:
        return (await stream.body()).decode()


@pytest.mark.parametrize("asking", [ask, ask_by_a_stream])
async def test_a_server_with_a_new_authority_is_trusted_when_its_file_is_there(
    servers: Servers, tmp_path: Path, asking: Callable[[HttpTransport], Awaitable[str]]
) -> None:
    url = await servers.start(who, tls=NEW.issue("server"))
    files = Files(tmp_path, OLD.certificate)
    transport = HttpTransport(config(url, files.tls()))
    with pytest.raises(UntrustedServerError, match="is not signed by the certificate-authority"):
        await asking(transport)
    files.write(NEW.certificate)
    answer = await asking(transport)
    await transport.close()

    assert answer == "anonymous"


async def test_an_own_certificate_that_was_renewed_is_shown_within_a_minute(servers: Servers, tmp_path: Path) -> None:
    url = await servers.start(who, tls=OLD.issue("server"), client_authority=OLD)
    files, clock = Files(tmp_path, OLD.certificate, OLD.issue("ann 1")), StandingClock()
    transport = HttpTransport(config(url, files.tls()), clock=clock)
    found = [await ask(transport)]
    files.write(own=OLD.issue("ann 2"))
    for clock.seconds in (59.0, 60.0):
        found.append(await ask(transport))
    await transport.close()

    assert found == ["ann 1", "ann 1", "ann 2"]


async def test_a_server_that_answers_401_to_an_old_certificate_is_shown_the_new_one(
    servers: Servers, tmp_path: Path
) -> None:
    async def only_the_second(request: web.Request) -> web.Response:
        answer = await who(request)
        return answer if answer.text == "ann 2" else web.Response(status=401)

    url = await servers.start(only_the_second, tls=OLD.issue("server"), client_authority=OLD)
    files = Files(tmp_path, OLD.certificate, OLD.issue("ann 1"))
    transport = HttpTransport(config(url, files.tls()))
    files.write(own=OLD.issue("ann 2"))
    answer = await ask(transport)
    await transport.close()

    assert answer == "ann 2"


async def test_a_certificate_whose_key_is_still_to_come_is_not_used_yet(
    servers: Servers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = await servers.start(who, tls=OLD.issue("server"), client_authority=OLD)
    files, clock = Files(tmp_path, OLD.certificate, OLD.issue("ann 1")), StandingClock()
    transport = HttpTransport(config(url, files.tls()), clock=clock)
    renewed = OLD.issue("ann 2")
    files.certificate.write_bytes(renewed.certificate)
    found = []
    with caplog.at_level(logging.WARNING, logger="konverge.client"):
        for clock.seconds in (60.0, 120.0):
            found.append(await ask(transport))
            files.key.write_bytes(renewed.key)
    await transport.close()

    assert found == ["ann 1", "ann 2"]
    assert [record.getMessage() for record in caplog.records] == [
        'context "here" of config: cannot reload the certificates; using the previous ones: cannot use '
        'client-certificate and client-key of context "here" of config: they do not belong together'
    ]


async def test_a_file_that_is_gone_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files = Files(tmp_path, OLD.certificate)
    contexts = TlsContexts(files.tls(), "config", SystemClock())
    used = await contexts.get_context(Identity())
    files.authority.unlink()

    assert not await contexts.reload(used)
    assert await contexts.get_context(Identity()) is used
    assert "ca.crt: No such file" in caplog.text


async def test_what_has_not_changed_keeps_its_connections(tmp_path: Path) -> None:
    clock = StandingClock()
    contexts = TlsContexts(Files(tmp_path, OLD.certificate).tls(), "config", clock)
    before = await contexts.get_context(Identity())
    clock.seconds = 1000.0

    assert await contexts.get_context(Identity()) is before


async def test_the_authority_of_a_pod_is_renewed_too(servers: Servers, tmp_path: Path) -> None:
    for name, content in (("token", b"t"), ("namespace", b"work"), ("ca.crt", OLD.certificate)):
        (tmp_path / name).write_bytes(content)
    host, port = (await servers.start(who, tls=NEW.issue("server"))).removeprefix("https://").split(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    transport = HttpTransport(load_in_cluster(env, folder=tmp_path))
    (tmp_path / "ca.crt").write_bytes(NEW.certificate)
    answer = await ask(transport)
    await transport.close()

    assert answer == "anonymous"


async def test_a_transport_with_its_own_connections_goes_by_the_certificates_of_now(
    servers: Servers, tmp_path: Path
) -> None:
    files = Files(tmp_path, OLD.certificate)
    url = await servers.start(who, tls=NEW.issue("server"))
    transport = HttpTransport(config(url, files.tls()))
    files.write(NEW.certificate)
    await ask(transport)
    files.authority.unlink()
    other = transport.with_own_connections()
    answer = await ask(other)
    await transport.close()
    await other.close()

    assert answer == "anonymous"


def test_a_machine_on_which_no_temporary_file_can_be_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    ann = NEW.issue("ann")
    config = ClusterConfig("https://127.0.0.1:1", "here", tls=TlsConfig(certificate=ann.certificate, key=ann.key))

    with pytest.raises(ConfigurationError, match="No such file or directory. Set TMPDIR to a writable folder"):
        HttpTransport(config)
