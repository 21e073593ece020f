"""Bundles in Debian's registry, with its own counters as witnesses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.credential_hosts import encode_basic_auth
from konverge_resolution._internal.engine import Requester
from tests.resolution.bundles.sample_images import (
    BUNDLE,
    WEB,
    BundleHarness,
    Secrets,
    build_docker_config,
    build_image,
    build_task,
    digest_of,
    object_layer,
)
from tests.resolution.servers.docker_registry import PASSWORD, USER, DockerRegistry, docker_registry

pytestmark = pytest.mark.anyio


def reference(registry: DockerRegistry, bundle: str, name: str = "build", **params: str) -> Reference:
    return Reference("bundles", {"bundle": f"{registry.name}/{bundle}", "name": name, **params})


@pytest.fixture(scope="session")
def private_registry() -> Iterator[DockerRegistry]:
    with docker_registry(authorization=encode_basic_auth(USER, PASSWORD)) as registry:
        registry.push("boxes", "1", *BUNDLE)
        yield registry


@pytest.mark.parametrize("by_digest", [False, True])
async def test_tags_and_digests_lead_to_the_right_layer_and_the_record_is_exact(
    real_registry: DockerRegistry, by_digest: bool
) -> None:
    real_registry.push("exact/boxes", "1", *BUNDLE)
    digest = digest_of(BUNDLE[0])
    asked = reference(real_registry, f"exact/boxes{f'@{digest}' if by_digest else ':1'}", kind="Pipeline")
    found = (await BundleHarness(real_registry.name).engine().resolve(asked, WEB)).resolved
    assert found.data == build_task("build", "Pipeline")
    assert found.source.uri == f"oci://{real_registry.name}/exact/boxes"
    assert (found.source.digest, found.source.entry_point) == ({"sha256": digest.removeprefix("sha256:")}, "build")
    assert found.annotations["dev.tekton.image.kind"] == "pipeline"
    assert found.pinned["bundle"] == f"{real_registry.name}/exact/boxes@{digest}"


async def test_what_is_not_there_is_told_with_what_is(real_registry: DockerRegistry) -> None:
    real_registry.push("absent", "1", *BUNDLE)
    engine = BundleHarness(real_registry.name).engine()
    with pytest.raises(ResolutionError, match="'task/build', 'pipeline/build', 'task/deploy'") as caught:
        await engine.resolve(reference(real_registry, "absent:1", "other"), WEB)
    assert caught.value.reason is Reason.NOT_FOUND
    for bundle in ("absent:2", "nowhere:1", f"absent@{digest_of(b'')}"):
        with pytest.raises(ResolutionError, match="has no image .*, or hides it") as caught:
            await engine.resolve(reference(real_registry, bundle), WEB)
        assert caught.value.reason is Reason.NOT_FOUND


async def test_a_blob_that_somebody_altered_in_the_storage_is_refused(real_registry: DockerRegistry) -> None:
    layer = object_layer("altered")
    real_registry.push("altered", "1", *build_image([layer]))
    real_registry.alter(digest_of(layer.data), layer.data[:-1] + b"x")
    with pytest.raises(ResolutionError, match="digest mismatch") as caught:
        await BundleHarness(real_registry.name).engine().resolve(reference(real_registry, "altered:1", "altered"), WEB)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


@pytest.mark.slow
async def test_two_hundred_who_want_the_same_at_once_cause_one_get_of_the_manifest_and_one_of_the_blob() -> None:
    with docker_registry() as registry:
        registry.push("boxes", "1", *BUNDLE)
        engine = BundleHarness(registry.name).engine()
        pinned, moving = reference(registry, f"boxes@{digest_of(BUNDLE[0])}"), reference(registry, "boxes:1")
        found = await asyncio.gather(*(engine.resolve(pinned, WEB) for _ in range(200)))
        assert {outcome.resolved.data for outcome in found} == {build_task("build")}
        assert (registry.count_requests("manifest", "get"), registry.count_requests("blob", "get")) == (1, 1)
        await asyncio.gather(*(engine.resolve(moving, WEB) for _ in range(200)))
        assert (registry.count_requests("manifest", "get"), registry.count_requests("blob", "get")) == (1, 1)
        assert registry.count_requests("manifest", "head") == 1


async def test_a_private_image_of_one_namespace_is_not_given_to_another_even_while_it_is_kept(
    private_registry: DockerRegistry,
) -> None:
    name = private_registry.name
    secrets = Secrets({"pull": build_docker_config(name, USER, PASSWORD)}, {"default": ("pull",)})
    wrong = Secrets({"pull": build_docker_config(name, USER, "wrong")}, {"default": ("pull",)})
    puller = BundleHarness(name, secrets={"web": secrets, "wrong": wrong})
    engine = puller.engine()
    asked = reference(private_registry, f"boxes@{digest_of(BUNDLE[0])}")
    named = reference(private_registry, f"boxes@{digest_of(BUNDLE[0])}", secret="pull")
    for wanted in (asked, named, asked):
        assert (await engine.resolve(wanted, WEB)).resolved.data == build_task("build")
    for namespace, reason in {"shop": Reason.AUTHENTICATION_REQUIRED, "wrong": Reason.DENIED}.items():
        with pytest.raises(ResolutionError) as caught:
            await engine.resolve(asked, Requester(namespace))
        assert caught.value.reason is reason
        assert PASSWORD not in caught.value.message
