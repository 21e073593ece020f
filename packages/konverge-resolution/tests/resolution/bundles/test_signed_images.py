"""Signatures beside images: where they are looked for, which of them count, and that nobody asks without need."""

from __future__ import annotations

import json

import pytest

from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Engine, EngineOptions, ResolutionResult
from konverge_resolution._internal.policy import Policy, SignatureMode, SignatureRule
from konverge_resolution._internal.resolvers.bundles.attached_signatures import MAX_SIGNATURES
from konverge_resolution._internal.signatures.cosign_signatures import SIMPLE_SIGNING
from konverge_resolution.signatures import SignatureVerifier, sign
from tests.resolution.bundles.sample_images import (
    BUNDLE,
    INDEX,
    WEB,
    BundleHarness,
    Layer,
    build_image,
    build_index,
    build_task,
    digest_of,
    object_layer,
)
from tests.resolution.servers.docker_registry import DockerRegistry
from tests.resolution.servers.fake_registry import FakeRegistry, RegistryReply
from tests.resolution.signatures.signers import BUNDLE_TYPE, OTHER, RIGHT, Signer

pytestmark = pytest.mark.anyio

DIGEST = digest_of(BUNDLE[0])
ONCE = EngineOptions(attempts=1)
ARTIFACT = "application/vnd.dev.cosign.artifact.sig.v1+json"


def engine(name: str, *policies: Policy) -> Engine:
    rule = SignatureRule(keys=(RIGHT.public,))
    found = policies or (Policy("signed", signature=rule),)
    return BundleHarness(name).engine(policies=found, verifier=SignatureVerifier())


async def resolve_image(name: str, bundle: str = "boxes:1", *policies: Policy) -> ResolutionResult:
    return await engine(name, *policies).resolve(
        Reference("bundles", {"bundle": f"{name}/{bundle}", "name": "build"}), WEB
    )


async def refusal(name: str, bundle: str = "boxes:1") -> str:
    with pytest.raises(ResolutionError) as caught:
        await resolve_image(name, bundle)
    assert caught.value.reason is Reason.SIGNATURE_INVALID
    return caught.value.message


def simple(signer: Signer, digest: str = DIGEST) -> Layer:
    payload, signature = signer.sign_simple(digest)
    return Layer(payload, SIMPLE_SIGNING, {"dev.cosignproject.cosign/signature": signature})


def tag_of(digest: str = DIGEST) -> str:
    return digest.replace(":", "-")


def push_referrers(fake: FakeRegistry, *layers: Layer, is_tag: bool = False, artifact_type: str = ARTIFACT) -> None:
    """Signatures as artefacts of their own, listed by the registry or under the tag that stands for its list."""
    made = [build_image([layer], artifactType=artifact_type) for layer in layers]
    for manifest, blobs in made:
        fake.push("boxes", digest_of(manifest), manifest, blobs)
    listed = build_index((manifest, {"artifactType": artifact_type}) for manifest, _ in made)
    if is_tag:
        fake.push("boxes", tag_of(), listed, {})
    else:
        fake.replies[f"/v2/boxes/referrers/{DIGEST}"] = RegistryReply(200, listed, {"Content-Type": INDEX})


async def test_an_image_that_cosign_has_signed_passes_in_a_real_registry(real_registry: DockerRegistry) -> None:
    real_registry.push("cosign/boxes", "1", *BUNDLE)
    assert "the content has no signature" in await refusal(real_registry.name, "cosign/boxes:1")
    real_registry.push("cosign/boxes", f"{tag_of()}.sig", *build_image([simple(OTHER)]))
    assert "its only signature does not match" in await refusal(real_registry.name, "cosign/boxes:1")
    real_registry.push("cosign/boxes", f"{tag_of()}.sig", *build_image([simple(OTHER), simple(RIGHT)]))
    outcome = await resolve_image(real_registry.name, "cosign/boxes:1")
    assert (outcome.resolved.data, outcome.policies, len(outcome.resolved.attached)) == (
        build_task("build"),
        ("signed",),
        2,
    )


@pytest.mark.parametrize("is_tag", [False, True])
@pytest.mark.parametrize(
    ("layer", "artifact_type"),
    [(simple(RIGHT), ARTIFACT), (Layer(RIGHT.sign_bundle(DIGEST), BUNDLE_TYPE), BUNDLE_TYPE)],
)
async def test_a_signature_that_refers_to_the_image_counts(
    fake: FakeRegistry, is_tag: bool, layer: Layer, artifact_type: str
) -> None:
    fake.push("boxes", "1", *BUNDLE)
    push_referrers(fake, layer, is_tag=is_tag, artifact_type=artifact_type)
    assert (await resolve_image(fake.name())).warnings == ()


async def test_an_objects_own_signature_counts_in_a_bundle_too(fake: FakeRegistry) -> None:
    obj = {"apiVersion": "tekton.dev/v1", "kind": "Task", "metadata": {"name": "build"}}
    signed = json.dumps(sign(obj, RIGHT.private)).encode()
    fake.push("boxes", "1", *build_image([object_layer("build", data=signed)]))
    assert (await resolve_image(fake.name())).resolved.data == signed


async def test_the_signature_of_an_index_counts_for_what_is_in_it(fake: FakeRegistry) -> None:
    listed = build_index([(BUNDLE[0], {})])
    fake.push("boxes", "one", *BUNDLE)
    fake.push("boxes", "1", listed, {})
    fake.push("boxes", f"{tag_of(digest_of(listed))}.sig", *build_image([simple(RIGHT, digest_of(listed))]))
    assert (await resolve_image(fake.name())).warnings == ()


async def test_the_signature_of_another_image_does_not_count(fake: FakeRegistry) -> None:
    other = build_image([object_layer("build", "Other")])
    fake.push("boxes", "1", *BUNDLE)
    fake.push("boxes", f"{tag_of()}.sig", *build_image([simple(RIGHT, digest_of(other[0]))]))
    push_referrers(fake, simple(RIGHT, digest_of(other[0])))
    assert "none of its 2 signatures matches" in await refusal(fake.name())


async def test_signatures_are_asked_for_by_a_policy_and_else_not_at_all(fake: FakeRegistry) -> None:
    fake.push("boxes", "1", *BUNDLE)
    await resolve_image(fake.name(), f"boxes@{DIGEST}", Policy("anything"))
    assert [request.path.split("/")[3] for request in fake.seen] == ["manifests", "blobs"]


async def test_what_was_kept_without_signatures_is_not_taken_for_unsigned(fake: FakeRegistry) -> None:
    fake.push("boxes", "1", *BUNDLE)
    fake.push("boxes", f"{tag_of()}.sig", *build_image([simple(RIGHT)]))
    asked = Reference("bundles", {"bundle": f"{fake.name()}/boxes@{DIGEST}", "name": "build"})
    one = engine(fake.name(), Policy("anything"))
    await one.resolve(asked, WEB)
    later = BundleHarness(fake.name()).engine(
        policies=[Policy("signed", signature=SignatureRule(keys=(RIGHT.public,)))],
        verifier=SignatureVerifier(),
        cache=one.cache,
    )
    assert (await later.resolve(asked, WEB)).warnings == ()


@pytest.mark.parametrize(
    "reply",
    [
        RegistryReply(404),
        RegistryReply(200, b"<html>", {"Content-Type": "text/html"}),
        RegistryReply(200, b"{}", {"Content-Type": INDEX}),
        RegistryReply(403),
    ],
)
async def test_a_list_that_is_none_stands_in_nobodys_way(fake: FakeRegistry, reply: RegistryReply) -> None:
    fake.push("boxes", "1", *BUNDLE)
    fake.push("boxes", f"{tag_of()}.sig", *build_image([simple(RIGHT)]))
    fake.replies[f"/v2/boxes/referrers/{DIGEST}"] = reply
    assert (await resolve_image(fake.name())).warnings == ()


async def test_a_signature_that_cannot_be_read_is_none_and_the_next_one_counts(fake: FakeRegistry) -> None:
    fake.push("boxes", "1", *BUNDLE)
    altered, right = simple(OTHER, digest_of(b"another")), simple(RIGHT)
    push_referrers(fake, altered, simple(Signer()))
    fake.blobs[digest_of(altered.data)] = b"x" * len(altered.data)
    fake.push("boxes", f"{tag_of()}.sig", *build_image([right]))
    assert len((await resolve_image(fake.name())).resolved.attached) == 2


async def test_a_registry_that_fails_is_no_reason_to_call_it_unsigned(fake: FakeRegistry) -> None:
    fake.push("boxes", "1", *BUNDLE)
    fake.replies[f"{tag_of()}.sig"] = RegistryReply(500)
    warns = Policy("signed", signature=SignatureRule(SignatureMode.WARN, keys=(RIGHT.public,)))
    puller = BundleHarness(fake.name())
    with pytest.raises(ResolutionError) as caught:
        await puller.engine(policies=[warns], verifier=SignatureVerifier(), options=ONCE).resolve(
            Reference("bundles", {"bundle": f"{fake.name()}/boxes@{DIGEST}", "name": "build"}), WEB
        )
    assert caught.value.reason is Reason.UNREACHABLE


async def test_a_registry_full_of_signatures_is_read_to_a_limit(fake: FakeRegistry) -> None:
    fake.push("boxes", "1", *BUNDLE)
    push_referrers(fake, *(simple(OTHER, f"{DIGEST}{number}") for number in range(MAX_SIGNATURES + 10)))
    fake.push("boxes", f"{tag_of()}.sig", *build_image([simple(RIGHT)]))
    assert f"none of its {MAX_SIGNATURES} signatures matches" in await refusal(fake.name())
    assert fake.count("GET", "blobs") == 1 + MAX_SIGNATURES
    assert fake.count("GET", "manifests") == 1 + MAX_SIGNATURES + 1  # of the image, and by cosign's tag
