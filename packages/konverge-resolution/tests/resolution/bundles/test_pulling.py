"""What a registry may say, do and see; the registry here says anything."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.resolvers.bundles import INDEX_DIGEST, BundlesResolver
from tests.resolution.bundles.sample_images import (
    BUNDLE,
    INDEX,
    MANIFEST,
    YAML,
    BundleHarness,
    Layer,
    Secrets,
    build_docker_config,
    build_image,
    build_index,
    build_task,
    digest_of,
    object_layer,
)
from tests.resolution.network.http_servers import certificate
from tests.resolution.servers.fake_registry import FakeRegistry, RegistryReply, Request, fake_registry

pytestmark = pytest.mark.anyio

PLATFORMS = [{"platform": {"os": "linux", "architecture": each}} for each in ("arm64", "amd64")]


@pytest.fixture
def puller(fake: FakeRegistry) -> BundleHarness:
    fake.push("boxes", "1", *BUNDLE)
    return BundleHarness(fake.name())


async def refusal(puller: BundleHarness, bundle: str = "boxes:1", **params: str) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await puller.get(bundle, **params)
    return caught.value


def layer_of(manifest: bytes, number: int = 0) -> str:
    return str(json.loads(manifest)["layers"][number]["digest"])


async def test_an_index_leads_to_its_manifest_and_both_are_on_record(fake: FakeRegistry) -> None:
    other = build_image([object_layer("other")])
    fake.push("boxes", "other", *other)
    fake.push("boxes", "one", *BUNDLE)
    listed = build_index(zip((other[0], BUNDLE[0]), PLATFORMS, strict=True))
    fake.push("boxes", "1", listed, {})
    found = await BundleHarness(fake.name()).get("boxes:1")
    assert found.data == build_task("build")
    assert found.source.digest == {"sha256": digest_of(BUNDLE[0]).removeprefix("sha256:")}
    assert found.annotations[INDEX_DIGEST] == digest_of(listed)
    assert found.pinned["bundle"] == f"{fake.name()}/boxes@{digest_of(listed)}"


async def test_an_index_of_indexes_is_refused(fake: FakeRegistry) -> None:
    inner = build_index([(BUNDLE[0], {})])
    fake.push("boxes", "1", build_index([(inner, {})]), {})
    fake.manifests["boxes", digest_of(inner)] = (inner, INDEX)
    assert "an index of indexes" in (await refusal(BundleHarness(fake.name()))).message


async def test_a_plain_artefact_comes_as_its_file(fake: FakeRegistry) -> None:
    fake.push(
        "files", "1", *build_image([Layer(build_task("box"), YAML, {"org.opencontainers.image.title": "box.yaml"})])
    )
    found = await BundleHarness(fake.name()).get("files:1", "box")
    assert (found.data, found.source.entry_point, found.annotations) == (build_task("box"), "box", {})


async def test_a_manifest_that_is_not_what_its_digest_says_is_refused(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    digest = digest_of(BUNDLE[0])
    evil = build_image([object_layer("build", data=b"evil")])
    fake.blobs |= evil[1]
    for header in ({"Docker-Content-Digest": digest}, {"Docker-Content-Digest": digest_of(evil[0])}, {}):
        fake.replies[digest] = RegistryReply(200, evil[0], {"Content-Type": MANIFEST, **header})
        error = await refusal(puller, f"boxes@{digest}")
        assert error.reason is Reason.DIGEST_MISMATCH
        assert f"expected {digest}" in error.message


async def test_a_tag_whose_digest_is_a_lie_is_refused(fake: FakeRegistry, puller: BundleHarness) -> None:
    fake.replies["1"] = RegistryReply(
        200, BUNDLE[0], {"Content-Type": MANIFEST, "Docker-Content-Digest": digest_of(b"other")}
    )
    assert (await refusal(puller)).reason is Reason.DIGEST_MISMATCH


async def test_what_a_tag_was_pinned_to_is_compared_with_what_comes(fake: FakeRegistry, puller: BundleHarness) -> None:
    evil = build_image([object_layer("build", data=b"evil")])
    pinned = await BundlesResolver().pin(puller.fetch("boxes:1"))
    assert pinned is not None
    assert pinned["bundle"] == f"{fake.name()}/boxes@{digest_of(BUNDLE[0])}"
    assert (fake.count("HEAD", "manifests"), len(fake.seen)) == (1, 1)
    fake.replies[digest_of(BUNDLE[0])] = RegistryReply(200, evil[0], {"Content-Type": MANIFEST})
    with pytest.raises(ResolutionError, match="digest mismatch"):
        await BundlesResolver().resolve(replace(puller.fetch("boxes:1"), params=pinned))


async def test_a_registry_that_does_not_say_what_a_tag_is_is_asked_for_the_manifest(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    fake.replies["1"] = RegistryReply(200, BUNDLE[0], {"Content-Type": MANIFEST})
    assert await BundlesResolver().pin(puller.fetch("boxes:1")) is None
    assert (await puller.get("boxes:1")).data == build_task("build")


async def test_an_index_entry_that_lies_about_a_size_is_refused(fake: FakeRegistry) -> None:
    fake.push("boxes", "one", *BUNDLE)
    fake.push("boxes", "1", build_index([(BUNDLE[0], {"size": 7})]), {})
    assert "expected 7 bytes" in (await refusal(BundleHarness(fake.name()))).message


@pytest.mark.parametrize("change", [lambda data: data[:-1] + b"x", lambda data: data[:-1], lambda data: data + b"x"])
async def test_a_blob_that_is_altered_shorter_or_longer_is_refused(
    fake: FakeRegistry, puller: BundleHarness, change: Callable[[bytes], bytes]
) -> None:
    digest = layer_of(BUNDLE[0])
    fake.blobs[digest] = change(fake.blobs[digest])
    error = await refusal(puller)
    assert error.reason is Reason.DIGEST_MISMATCH
    assert "'build' of image" in error.message


async def test_a_blob_that_breaks_off_can_be_had_later(fake: FakeRegistry, puller: BundleHarness) -> None:
    digest = layer_of(BUNDLE[0])
    fake.replies[digest] = RegistryReply(200, fake.blobs[digest], cut=20)
    error = await refusal(puller)
    assert (error.reason, error.traits.is_transient) == (Reason.UNREACHABLE, True)


async def test_a_layer_that_says_it_is_large_is_not_even_asked_for(fake: FakeRegistry) -> None:
    manifest, blobs = BUNDLE
    document = json.loads(manifest)
    document["layers"][0]["size"] = 10 << 30
    fake.push("boxes", "1", json.dumps(document).encode(), blobs)
    assert (await refusal(BundleHarness(fake.name()))).reason is Reason.TOO_LARGE
    assert fake.count("GET", "blobs") == 0


async def test_a_bomb_in_a_layer_is_refused(fake: FakeRegistry) -> None:
    bomb = object_layer("build")
    fake.push("boxes", "1", *build_image([replace(bomb, data=gzip.compress(bytes(20 << 20)))]))
    assert (await refusal(BundleHarness(fake.name()))).reason is Reason.TOO_LARGE


async def test_a_manifest_without_end_is_refused(fake: FakeRegistry, puller: BundleHarness) -> None:
    fake.replies["1"] = RegistryReply(200, b" " * (3 << 20), {"Content-Type": MANIFEST})
    assert (await refusal(puller)).reason is Reason.TOO_LARGE


async def test_what_a_registry_says_is_told_apart(fake: FakeRegistry, puller: BundleHarness) -> None:
    messages = set()
    for status, reason in {
        401: Reason.AUTHENTICATION_REQUIRED,
        403: Reason.AUTHENTICATION_REQUIRED,
        404: Reason.NOT_FOUND,
        410: Reason.NOT_FOUND,
        429: Reason.RATE_LIMITED,
        500: Reason.UNREACHABLE,
        503: Reason.UNREACHABLE,
    }.items():
        fake.replies["1"] = RegistryReply(status, b"<secret>", {"Retry-After": "7"} if status == 429 else {})
        error = await refusal(puller)
        assert (error.reason, error.retry_after_seconds) == (reason, 7 if status == 429 else None)
        assert "secret" not in error.message
        messages.add(error.message)
        if reason is Reason.NOT_FOUND:
            message = (
                f"registry {puller.registry} has no image {puller.registry}/boxes:1, or hides it (status {status})"
            )
            assert error.message == message
    assert len(messages) == 7


async def test_a_registry_with_tokens_gives_one_to_anybody_if_it_wants(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    fake.realm = f"http://{fake.name()}/token"
    assert (await puller.get("boxes:1")).data == build_task("build")
    # One token for the manifest and the blob.
    assert (fake.count("GET", "/token"), fake.count("GET", "manifests")) == (1, 2)


def private(puller: BundleHarness, password: str = "right", account: bool = False) -> BundleHarness:
    data = build_docker_config(puller.registry, "me", password)
    secrets = Secrets({"pull": data}, {"default": ("absent", "pull")} if account else {})
    return replace(puller, secrets={"web": secrets})


@pytest.mark.parametrize("has_tokens", [False, True])
async def test_a_private_image_needs_a_secret_for_it(
    fake: FakeRegistry, puller: BundleHarness, has_tokens: bool
) -> None:
    fake.logins = {"me": "right"}
    fake.realm = f"http://{fake.name()}/token" if has_tokens else ""
    assert (await private(puller).get("boxes:1", secret="pull")).data == build_task("build")
    assert (await private(puller, account=True).get("boxes:1")).data == build_task("build")
    none = await refusal(puller)
    assert none.reason is Reason.AUTHENTICATION_REQUIRED
    wrong = await refusal(private(puller, "wrong"), secret="pull")
    assert wrong.reason is Reason.DENIED
    assert "wrong" not in wrong.message
    absent = await refusal(puller, secret="absent")
    assert absent.reason is Reason.AUTHENTICATION_REQUIRED
    assert len({none.message, wrong.message, absent.message}) == 3


async def test_a_registry_is_not_asked_once_more_with_nothing_to_show(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    fake.logins = {"me": "right"}
    assert (await refusal(puller)).reason is Reason.AUTHENTICATION_REQUIRED
    assert fake.count("GET", "manifests") == 1


async def test_an_account_that_was_named_has_to_be_there(fake: FakeRegistry, puller: BundleHarness) -> None:
    fake.logins = {"me": "right"}
    error = await refusal(private(puller, account=True), serviceAccount="other")
    assert "ServiceAccount is not there" in error.message


async def test_secrets_are_not_read_for_what_is_public(fake: FakeRegistry, puller: BundleHarness) -> None:
    found = private(puller)
    await found.get("boxes:1", secret="pull")
    assert found.secrets["web"].reads == 0
    assert {request.authorization for request in fake.seen} == {""}


async def test_a_password_is_shown_to_no_realm_that_the_operator_has_not_named(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    fake.logins = {"me": "right"}
    fake.realm = f"http://{fake.name('auth.test')}/token"
    error = await refusal(private(puller), secret="pull")
    assert error.reason is Reason.DENIED
    assert error.message.endswith("; add it to setting 'token-realms' for this registry")
    assert fake.count("GET", "/token") == 0
    allowed = replace(private(puller), settings={"token-realms": f"{puller.registry}={fake.name('auth.test')}"})
    assert (await allowed.get("boxes:1", secret="pull")).data == build_task("build")


async def test_the_registry_sees_the_token_and_the_realm_the_password(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    fake.logins = {"me": "right"}
    fake.realm = f"http://{fake.name()}/token"
    await private(puller).get("boxes:1", secret="pull")
    by_path = {request.path.split("/")[1]: request.authorization for request in fake.seen if request.authorization}
    assert by_path["v2"] == "Bearer a-token"
    assert by_path["token"].startswith("Basic ")


async def test_a_registry_without_tls_has_the_setting_named_for_such(fake: FakeRegistry, puller: BundleHarness) -> None:
    error = await refusal(replace(puller, settings={"plain-http-registries": ""}))
    assert error.reason is Reason.DENIED
    assert error.message.endswith(
        "supports no common version of TLS; if it has no TLS on purpose, add it to setting 'plain-http-registries'"
    )


async def test_a_registry_with_tls_cannot_send_us_to_a_realm_without(tmp_path: Path) -> None:
    authorities, tls = certificate(tmp_path, "registry.test")
    with fake_registry(tls) as secure, fake_registry() as plain:
        secure.push("boxes", "1", *BUNDLE)
        puller = BundleHarness(secure.name(), {"plain-http-registries": ""}, authorities=authorities)
        for login, realms in ((puller, ""), (private(puller, account=True), f"{secure.name()}={plain.name()}")):
            secure.realm = f"http://{plain.name()}/token"
            message = replace(login, settings={**puller.settings, "token-realms": realms})
            error = await refusal(message)
            assert error.reason is Reason.DENIED
            assert "without TLS" in error.message
            secure.realm = f"https://{secure.name()}/token"
            assert (await message.get("boxes:1")).data == build_task("build")
        assert plain.seen == []


async def test_a_blob_that_is_elsewhere_is_got_there_without_the_credential(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    fake.logins = {"me": "right"}
    digest = layer_of(BUNDLE[0])
    with fake_registry() as store:
        store.replies["stored"] = RegistryReply(200, fake.blobs[digest])
        fake.replies[digest] = RegistryReply(307, b"", {"Location": f"http://{store.name('store.test')}/stored"})
        assert (await private(puller).get("boxes:1", secret="pull")).data == build_task("build")
        assert [request.authorization for request in store.seen] == [""]
    assert any(request.authorization for request in fake.seen)


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://10.0.0.1/", "http://[::1]:1/"])
async def test_a_redirect_to_an_address_that_is_not_allowed_is_refused(
    fake: FakeRegistry, puller: BundleHarness, target: str
) -> None:
    fake.replies[layer_of(BUNDLE[0])] = RegistryReply(307, b"", {"Location": target})
    error = await refusal(puller)
    assert error.reason is Reason.DENIED
    assert "169.254" not in error.message


async def test_a_registry_in_a_network_that_is_not_allowed_is_not_connected_to(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    for registry in (puller.registry, f"127.0.0.1:{fake.port}"):
        closed = BundleHarness(registry, networks=())
        assert (await refusal(closed)).reason is Reason.DENIED
    assert fake.seen == []


async def test_a_registry_that_does_not_answer_is_let_go_when_the_time_is_over(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    held = threading.Event()
    loop = asyncio.get_running_loop()

    def hang(request: Request) -> RegistryReply:
        loop.call_soon_threadsafe(reached.set)
        held.wait(20)
        return RegistryReply(500)

    reached = asyncio.Event()
    fake.replies[layer_of(BUNDLE[0])] = hang
    waiting = asyncio.create_task(puller.get("boxes:1"))
    await reached.wait()
    waiting.cancel()
    await asyncio.wait([waiting], timeout=2)
    assert waiting.cancelled()
    held.set()


PARAMETERS = [
    ({"bundle": ""}, "parameter 'bundle': expected one, found none"),
    ({"bundle": "a.example/Boxes"}, "parameter 'bundle': expected a repository"),
    ({"name": ""}, "parameter 'name': expected one, found none"),
    ({"name": "a\nb"}, "parameter 'name'"),
    ({"name": "a" * 300}, "parameter 'name'"),
    ({"kind": "a/b"}, "parameter 'kind'"),
    ({"secret": "../a"}, "parameter 'secret'"),
    ({"serviceAccount": "A"}, "parameter 'serviceAccount'"),
    ({"nmae": "a"}, "parameter 'nmae': no such parameter"),
]


@pytest.mark.parametrize(("params", "told"), PARAMETERS)
async def test_a_parameter_that_is_wrong_is_named(params: dict[str, str], told: str) -> None:
    settings = {key: setting.default for key, setting in BundlesResolver().settings.items()}
    with pytest.raises(ResolutionError) as caught:
        BundlesResolver().validate({"bundle": "a.example/boxes", "name": "a", **params}, settings)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
    assert told in caught.value.message


async def test_the_operator_can_name_the_registries_that_may_be_asked(
    fake: FakeRegistry, puller: BundleHarness
) -> None:
    limited = replace(puller, settings={"allowed-registries": "good.test, other.test:5000"})
    with pytest.raises(
        ResolutionError, match=r"expected one of setting 'allowed-registries': good.test, other.test:5000"
    ) as caught:
        await limited.engine().resolve(
            Reference("bundles", {"bundle": f"{puller.registry}/boxes", "name": "build"}), Requester("web")
        )
    assert (caught.value.reason, fake.seen) == (Reason.DENIED, [])
