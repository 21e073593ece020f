"""What is in an image: its objects, files and paths, under the same policies as a fetch."""

from __future__ import annotations

import gzip

import pytest

from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.definition_listing import ListedDefinition
from konverge_resolution._internal.engine import Engine
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.source_prefix import SourcePrefix
from tests.resolution.bundles.sample_images import (
    BUNDLE,
    TAR_GZIP,
    WEB,
    YAML,
    BundleHarness,
    Layer,
    build_image,
    build_index,
    build_task,
    object_layer,
)
from tests.resolution.bundles.test_archives import FILES, FLUX, TITLE, build_archive
from tests.resolution.fake_resolver import FakeResolver
from tests.resolution.servers.fake_registry import FakeRegistry
from tests.resolution.test_engine import engine_of

pytestmark = pytest.mark.anyio


async def list_bundle(engine: Engine, fake: FakeRegistry, bundle: str, **params: str) -> list[ListedDefinition]:
    reference = Reference("bundles", {"bundle": f"{fake.name()}/{bundle}", **params})
    return list(await engine.list_definitions(reference, WEB))


@pytest.fixture
def engine(fake: FakeRegistry) -> Engine:
    fake.push("boxes", "1", *BUNDLE)
    fake.push("boxes", "index", build_index([(BUNDLE[0], {})]), {})
    return BundleHarness(fake.name()).engine()


@pytest.mark.parametrize("tag", ["1", "index"])
async def test_the_objects_of_a_bundle_are_listed_without_a_layer(fake: FakeRegistry, engine: Engine, tag: str) -> None:
    listed = await list_bundle(engine, fake, f"boxes:{tag}")
    assert [(each.params, each.details) for each in listed] == [
        ({"kind": "task", "name": "build"}, {"apiVersion": "tekton.dev/v1"}),
        ({"kind": "pipeline", "name": "build"}, {"apiVersion": "tekton.dev/v1"}),
        ({"kind": "task", "name": "deploy"}, {"apiVersion": "tekton.dev/v1"}),
    ]
    assert fake.count("GET", "blobs") == 0
    for each in listed:
        reference = Reference("bundles", {"bundle": f"{fake.name()}/boxes:{tag}", **each.params})
        assert (await engine.resolve(reference, WEB)).object["metadata"]["name"] == each.params["name"]


async def test_files_and_the_paths_of_an_archive_are_listed_together(fake: FakeRegistry, engine: Engine) -> None:
    file = Layer(build_task("box"), YAML, {TITLE: "box.yaml"})
    archive = Layer(gzip.compress(build_archive(FILES)), FLUX)
    fake.push("files", "1", *build_image([file, archive]))
    listed = await list_bundle(engine, fake, "files:1")
    assert [each.params["name"] for each in listed] == ["box.yaml", *sorted(FILES)]
    assert listed[0].details == {"mediaType": YAML}
    assert listed[-1].size_bytes == len(FILES["tasks/deploy.yaml"])


async def test_policies_hold_for_a_list_before_a_connection(fake: FakeRegistry) -> None:
    policy = Policy("ours", sources=(SourcePrefix.parse("oci://registry.example.com"),))
    with pytest.raises(ResolutionError) as caught:
        await list_bundle(BundleHarness(fake.name()).engine(policies=[policy]), fake, "boxes:1")
    assert (caught.value.reason, fake.seen) == (Reason.DENIED, [])


@pytest.mark.parametrize(("more", "told"), [({"name": "build"}, "'name'"), ({"kind": "task"}, "'kind'")])
async def test_a_list_has_no_name_and_no_kind(
    fake: FakeRegistry, engine: Engine, more: dict[str, str], told: str
) -> None:
    with pytest.raises(ResolutionError, match="has no effect on a list") as caught:
        await list_bundle(engine, fake, "boxes:1", **more)
    assert told in caught.value.message


async def test_what_is_not_there_or_too_much_is_told_as_for_a_fetch(fake: FakeRegistry, engine: Engine) -> None:
    with pytest.raises(ResolutionError) as caught:
        await list_bundle(engine, fake, "boxes:2")
    assert caught.value.reason is Reason.NOT_FOUND
    fake.push("many", "1", *build_image([object_layer(str(number)) for number in range(21)]))
    with pytest.raises(ResolutionError, match="at most 20 layers"):
        await list_bundle(engine, fake, "many:1")
    fake.push("other", "1", *build_image([Layer(b"x", TAR_GZIP), Layer(b"y", TAR_GZIP)]))
    assert await list_bundle(engine, fake, "other:1") == []


async def test_a_resolver_that_cannot_list_says_so() -> None:
    with pytest.raises(ResolutionError, match="resolver 'shelf' cannot list") as caught:
        await engine_of(FakeResolver()).list_definitions(Reference("shelf", {"url": "https://a.example"}), WEB)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
