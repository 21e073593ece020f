"""The certificate that replicas share, over years and between two replicas."""

from __future__ import annotations

import asyncio
import base64
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge._internal.certificates import KeyPair
from konverge._internal.runtime.certificate_watcher import CertificateWatcher
from konverge._internal.runtime.webhooks import OperatorHooks, WebhookOptions, WebhookServer, unregister
from konverge._internal.runtime.webhooks.certificate_rotation import OVERLAP, CertificateBundle, plan_rotation
from konverge._internal.runtime.webhooks.secret_certificate import SecretCertificate
from konverge._internal.runtime.webhooks.self_signed_certificate import write_pair
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cancellation_leaks import cancel_again
from tests.runtime.webhooks.sample_reviews import build_hook

pytestmark = pytest.mark.anyio

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
HOSTS = ("webhooks.system.svc",)
SECRET = GroupVersionKind("", "v1", "Secret")


def is_trusted(kept: CertificateBundle, bundle: tuple[bytes, ...], now: datetime) -> bool:
    """Return whether a client that trusts this bundle accepts this certificate now."""
    server = x509.load_pem_x509_certificate(kept.server.certificate)
    if not server.not_valid_before_utc <= now < server.not_valid_after_utc:
        return False
    for authority in map(x509.load_pem_x509_certificate, bundle):
        if authority.public_key() == x509.load_pem_x509_certificate(kept.signer.certificate).public_key():
            server.verify_directly_issued_by(authority)
            return authority.not_valid_after_utc > now
    return False


@pytest.mark.slow
@settings(max_examples=15)
@given(hours=st.lists(st.integers(2, 24 * 20), min_size=50, max_size=120))
def test_a_client_that_is_one_refresh_behind_still_trusts_the_certificate(hours: list[int]) -> None:
    now = BEGIN
    kept = plan_rotation(None, HOSTS, now)
    for pause in hours:
        now += timedelta(hours=pause)
        before, kept = kept, plan_rotation(kept, HOSTS, now)

        assert is_trusted(kept, kept.bundle, now)
        assert is_trusted(kept, before.bundle, now)
        assert is_trusted(before, kept.bundle, now)
        assert len(kept.bundle) <= 3


def test_nothing_is_made_anew_before_it_is_due() -> None:
    kept = plan_rotation(None, HOSTS, BEGIN)

    assert plan_rotation(kept, HOSTS, BEGIN + timedelta(days=59)) == kept


def test_a_certificate_is_made_anew_under_the_same_authority() -> None:
    kept = plan_rotation(None, HOSTS, BEGIN)

    renewed = plan_rotation(kept, HOSTS, BEGIN + timedelta(days=60))

    assert renewed.server != kept.server
    assert (renewed.signer, renewed.bundle) == (kept.signer, kept.bundle)


def test_an_authority_is_announced_long_before_it_signs() -> None:
    kept = plan_rotation(None, HOSTS, BEGIN)
    due = BEGIN + timedelta(days=244)

    announced = plan_rotation(kept, HOSTS, due)
    waiting = plan_rotation(announced, HOSTS, due + OVERLAP / 2)
    signing = plan_rotation(waiting, HOSTS, due + OVERLAP)

    assert announced.upcoming is not None
    assert announced.signer == kept.signer
    assert announced.bundle == (kept.signer.certificate, announced.upcoming.certificate)
    assert waiting.signer == kept.signer
    assert signing.signer == announced.upcoming
    assert signing.bundle == announced.bundle


def test_another_name_needs_another_certificate() -> None:
    kept = plan_rotation(None, HOSTS, BEGIN)

    assert plan_rotation(kept, ("127.0.0.1", *HOSTS), BEGIN).server != kept.server


def test_what_is_kept_comes_back_as_it_was() -> None:
    kept = plan_rotation(plan_rotation(None, HOSTS, BEGIN), HOSTS, BEGIN + timedelta(days=244))

    assert CertificateBundle.from_data(kept.to_data()) == kept


@pytest.mark.parametrize("spoilt", ["tls.crt", "tls.key", "signer.key", "ca.crt"])
def test_what_cannot_be_read_is_made_anew(spoilt: str) -> None:
    data = plan_rotation(None, HOSTS, BEGIN).to_data()

    assert CertificateBundle.from_data({**data, spoilt: b"?"}) is None
    assert CertificateBundle.from_data({name: value for name, value in data.items() if name != spoilt}) is None


async def test_replicas_share_one_certificate(cluster: Cluster, tmp_path: Path) -> None:
    key = ObjectKey(cluster.namespace, "webhooks")
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
    replicas = [SecretCertificate(cluster.client, key, folder, HOSTS, cluster.clock) for folder in folders]

    await asyncio.gather(*(replica.refresh() for replica in replicas))
    first = await cluster.client.get(SECRET, key)
    await replicas[0].refresh()

    assert await cluster.client.get(SECRET, key) == first
    for name in ("tls.crt", "tls.key", "ca.crt"):
        assert {(folder / name).read_bytes() for folder in folders} == {base64.b64decode(first["data"][name])}
    assert CertificateWatcher(folders[0]).reads == 1

    await cluster.client.patch(SECRET, key, {"data": {"signer.key": None}}, patch_type="merge")
    await asyncio.gather(*(replica.refresh() for replica in replicas))

    repaired = await cluster.client.get(SECRET, key)
    assert repaired["data"]["tls.crt"] != first["data"]["tls.crt"]
    assert {(folder / "tls.crt").read_bytes() for folder in folders} == {base64.b64decode(repaired["data"]["tls.crt"])}


@pytest.mark.real_time
async def test_what_is_registered_follows_the_shared_authorities(cluster: Cluster) -> None:
    key = ObjectKey(cluster.namespace, "webhooks")
    options = WebhookOptions(port=0, certificate_secret=key, poll_interval=timedelta(seconds=0.02))
    name = f"konverge-{cluster.namespace}"
    configuration = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")

    async with WebhookServer(
        options, OperatorHooks((build_hook(failure_policy="Ignore"),)), client=cluster.client
    ) as server:
        keeping = asyncio.create_task(
            server.keep_registered(cluster.client, lambda: server.build_manifests(name), look_seconds=0.02)
        )

        async def is_registered() -> bool:
            found = await cluster.client.get(configuration, ObjectKey("", name))
            secret = await cluster.client.get(SECRET, key)
            return bool(found["webhooks"][0]["clientConfig"]["caBundle"] == secret["data"]["ca.crt"])

        await cluster.eventually(is_registered, describe="the authority is registered")
        secret = await cluster.client.get(SECRET, key)
        kept = plan_rotation(
            CertificateBundle.from_data(decode_secret_data(secret)), HOSTS, SystemClock().now() + timedelta(days=250)
        )
        assert len(kept.bundle) == 2
        secret["data"] = {item: base64.b64encode(value).decode() for item, value in kept.to_data().items()}
        await cluster.client.update(secret)
        other = SecretCertificate(cluster.client, key, Path(server.certificate.folder), ["127.0.0.1"], cluster.clock)
        await other.refresh()
        await cluster.eventually(is_registered, describe="both authorities are registered")
        keeping.cancel()
        await asyncio.wait([keeping])
        await unregister(cluster.client, server.build_manifests(name))

    assert server.unready_reason


async def test_a_cancellation_waits_for_the_write_of_a_certificate(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()

    def slowly(folder: Path, pair: KeyPair, authorities: bytes) -> None:
        begun.set()
        may_go_on.wait(5)
        write_pair(folder, pair, authorities)

    monkeypatch.setattr("konverge._internal.runtime.webhooks.secret_certificate.write_pair", slowly)
    shared = SecretCertificate(
        cluster.client, ObjectKey(cluster.namespace, "certificate"), tmp_path, HOSTS, cluster.clock
    )
    refreshing = asyncio.create_task(shared.refresh())
    await asyncio.to_thread(begun.wait, 5)
    await cancel_again(refreshing)
    is_still_writing = not refreshing.done()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await refreshing

    assert is_still_writing


async def test_a_certificate_in_a_secret_needs_a_client() -> None:
    options = WebhookOptions(port=0, certificate_secret=ObjectKey("system", "webhooks"))

    with pytest.raises(ConfigurationError, match="in Secret system/webhooks: expected a client"):
        await WebhookServer(options, OperatorHooks()).__aenter__()


def decode_secret_data(secret: Object) -> dict[str, bytes]:
    return {name: base64.b64decode(value) for name, value in secret["data"].items()}
