"""Certificates that change while they are in use."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from konverge._internal.certificates import CertificateAuthority, compute_renewal_delay
from konverge._internal.runtime.certificate_watcher import CertificateWatcher
from konverge._internal.runtime.webhooks import OperatorHooks, WebhookEndpoint, WebhookOptions, WebhookServer
from konverge._internal.runtime.webhooks.self_signed_certificate import SelfSignedCertificate, write_pair
from konverge.clock import SimulatedClock, SystemClock
from konverge.errors import ConfigurationError
from tests.runtime.webhooks.sample_reviews import build_admission_review, build_hook, encode_review

pytestmark = pytest.mark.anyio

NOW = SystemClock().now()
HOSTS = ["127.0.0.1", "localhost", "webhooks.system.svc"]


@pytest.fixture
def anyio_backend(request: pytest.FixtureRequest) -> object:
    from konverge.clock import SimulatedLoop

    return ("asyncio", {"loop_factory": SimulatedLoop}) if "simulated" in request.node.name else "asyncio"


@pytest.fixture
def authority() -> CertificateAuthority:
    return CertificateAuthority("test", NOW)


@pytest.fixture
def folder(tmp_path: Path, authority: CertificateAuthority) -> Path:
    write_pair(tmp_path, authority.issue(HOSTS, NOW), authority.pair.certificate)
    return tmp_path


def serial(pem: bytes) -> int:
    return x509.load_pem_x509_certificate(pem).serial_number


async def read_served_serial(port: int, authority: CertificateAuthority) -> int:
    """Return the serial number of the certificate that a new connection receives."""
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(certificate).serial_number


def test_our_own_certificate_is_one_of_p256_for_these_names_alone(authority: CertificateAuthority) -> None:
    found = x509.load_pem_x509_certificate(authority.issue(HOSTS, NOW).certificate)

    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "webhooks.system.svc"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert found.public_key().curve.name == "secp256r1"  # type: ignore[union-attr]  # the key of an elliptic curve
    assert not found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority.pair.certificate))


def test_an_authority_can_be_taken_up_again(authority: CertificateAuthority) -> None:
    again = CertificateAuthority.from_pair(authority.pair).issue(HOSTS, NOW)

    x509.load_pem_x509_certificate(again.certificate).verify_directly_issued_by(
        x509.load_pem_x509_certificate(authority.pair.certificate)
    )


def test_a_certificate_does_not_outlive_its_authority() -> None:
    short = CertificateAuthority("test", NOW, timedelta(days=1))

    assert short.issue(HOSTS, NOW, timedelta(days=90)).not_after == short.pair.not_after


def test_no_key_is_shown(authority: CertificateAuthority) -> None:
    assert "PRIVATE" not in repr(authority.issue(HOSTS, NOW))


def test_a_key_is_readable_by_its_owner_alone(folder: Path) -> None:
    assert (folder / "tls.key").stat().st_mode & 0o077 == 0


def test_a_certificate_is_renewed_after_two_thirds_of_its_time() -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    pair = CertificateAuthority("test", begin).issue(HOSTS, begin, timedelta(days=90))

    assert timedelta(days=59) < compute_renewal_delay(pair, begin) < timedelta(days=60)
    assert compute_renewal_delay(pair, begin + timedelta(days=80)) == timedelta(seconds=1)


async def test_in_simulated_time_the_certificate_is_always_valid(tmp_path: Path) -> None:
    clock = SimulatedClock(NOW)
    own = SelfSignedCertificate(tmp_path, HOSTS, clock, lifetime=timedelta(days=9))
    authorities = (tmp_path / "ca.crt").read_bytes()
    renewing = asyncio.create_task(own.renew())
    serials = set()
    for _ in range(30):
        await clock.sleep(timedelta(days=1).total_seconds())
        found = x509.load_pem_x509_certificate((tmp_path / "tls.crt").read_bytes())
        serials.add(found.serial_number)
        assert found.not_valid_after_utc - clock.now() > timedelta(days=2)
    renewing.cancel()

    assert len(serials) == 6
    assert (tmp_path / "ca.crt").read_bytes() == authorities


def test_nothing_is_read_while_nothing_changes(folder: Path) -> None:
    found = CertificateWatcher(folder)

    assert not found.reload_if_changed()
    assert (found.reads, found.read_errors) == (1, 0)


def test_a_pair_that_does_not_belong_together_is_not_taken(
    folder: Path, authority: CertificateAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    found = CertificateWatcher(folder)
    other = authority.issue(HOSTS, NOW)

    (folder / "tls.crt").write_bytes(other.certificate)
    assert not found.reload_if_changed()
    (folder / "tls.key").write_bytes(other.key[:40])
    assert not found.reload_if_changed()
    assert not found.reload_if_changed()

    assert (found.reads, found.read_errors) == (1, 2)
    assert found.last_error
    assert len(caplog.records) == 1
    assert "the previous one stays" in caplog.text
    assert "PRIVATE" not in caplog.text

    (folder / "tls.key").write_bytes(other.key)
    assert found.reload_if_changed()
    assert (found.reads, found.last_error) == (2, "")


def test_a_pair_that_is_gone_for_a_while_changes_nothing(folder: Path, authority: CertificateAuthority) -> None:
    found = CertificateWatcher(folder)
    for name in ("tls.crt", "tls.key"):
        (folder / name).unlink()
    assert not found.reload_if_changed()

    write_pair(folder, authority.issue(HOSTS, NOW), authority.pair.certificate)

    assert found.reload_if_changed()


def test_a_mounted_secret_is_swapped_as_a_link(tmp_path: Path, authority: CertificateAuthority) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_pair(tmp_path / name, authority.issue(HOSTS, NOW), authority.pair.certificate)
    (tmp_path / "..data").symlink_to("one")
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for file in ("tls.crt", "tls.key", "ca.crt"):
        (mounted / file).symlink_to(tmp_path / "..data" / file)
    found = CertificateWatcher(mounted)

    (tmp_path / "..new").symlink_to("two")
    (tmp_path / "..new").rename(tmp_path / "..data")

    assert found.reload_if_changed()


@pytest.mark.parametrize("broken", ["absent", "empty", "encrypted"])
def test_without_a_usable_pair_nothing_begins(tmp_path: Path, authority: CertificateAuthority, broken: str) -> None:
    pair = authority.issue(HOSTS, NOW)
    if broken == "empty":
        (tmp_path / "tls.crt").touch()
        (tmp_path / "tls.key").touch()
    if broken == "encrypted":
        (tmp_path / "tls.crt").write_bytes(pair.certificate)
        (tmp_path / "tls.key").write_bytes(encrypt_key(pair.key))

    with pytest.raises(ConfigurationError, match="cannot be loaded: .*; expected tls.crt and tls.key in PEM"):
        CertificateWatcher(tmp_path)


def encrypt_key(key: bytes) -> bytes:
    from cryptography.hazmat.primitives import serialization as written

    form = written.PrivateFormat.PKCS8
    secret = written.BestAvailableEncryption(b"hunter2")
    loaded = written.load_pem_private_key(key, None)
    return loaded.private_bytes(written.Encoding.PEM, form, secret)


async def test_new_connections_meet_the_new_certificate_and_old_ones_go_on(
    folder: Path, authority: CertificateAuthority
) -> None:
    options = WebhookOptions(port=0, certificate_folder=folder, poll_interval=timedelta(seconds=0.01))
    hook = build_hook()
    context = ssl.create_default_context(cadata=authority.pair.certificate.decode())
    async with (
        WebhookServer(options, OperatorHooks((hook,))) as server,
        aiohttp.ClientSession(server.url, connector=aiohttp.TCPConnector(ssl=context, limit=1)) as session,
    ):
        assert server.endpoint == WebhookEndpoint(server.url, authority.pair.certificate)
        first = await read_served_serial(server.port, authority)

        async def ask() -> int:
            headers = {"content-type": "application/json"}
            async with session.post(hook.path, data=encode_review(build_admission_review()), headers=headers) as answer:
                return answer.status

        assert await ask() == 200
        seen = {first}
        for _ in range(5):
            pair = authority.issue(HOSTS, NOW)
            reads = server.certificate.reads
            write_pair(folder, pair, authority.pair.certificate)
            async with asyncio.timeout(20):
                while server.certificate.reads == reads:
                    assert await ask() == 200  # on the earlier connection
                    assert await read_served_serial(server.port, authority) in {*seen, serial(pair.certificate)}
            seen.add(serial(pair.certificate))
            assert await read_served_serial(server.port, authority) == serial(pair.certificate)
