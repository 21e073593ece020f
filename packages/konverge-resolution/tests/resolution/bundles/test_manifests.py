"""Manifests, indexes and layouts: one reading of each, and a refusal of its own for each mistake."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolvers.bundles.layer_selection import select_layer
from konverge_resolution._internal.resolvers.bundles.manifests import (
    ImageIndex,
    Manifest,
    parse_manifest,
    select_manifest,
)
from tests.resolution.bundles.sample_images import (
    BUNDLE,
    INDEX,
    MANIFEST,
    TAR_GZIP,
    YAML,
    Layer,
    build_annotations,
    build_image,
    build_index,
    build_task,
    digest_of,
    object_layer,
)


def parse_image_manifest(data: bytes, content_type: str = MANIFEST) -> Manifest | ImageIndex:
    return parse_manifest(data, content_type, what="image a")


def manifest_of(*layers: Layer) -> Manifest:
    found = parse_image_manifest(build_image(layers)[0])
    assert isinstance(found, Manifest)
    return found


def refusal(data: bytes, content_type: str = MANIFEST) -> str:
    with pytest.raises(ResolutionError) as caught:
        parse_image_manifest(data, content_type)
    assert caught.value.reason is Reason.UNSUPPORTED_CONTENT
    return caught.value.message


def layer_refused(manifest: Manifest, name: str = "build", kind: str = "task") -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        select_layer(manifest, name=name, kind=kind, what="image a")
    return caught.value


def build_changed_manifest(**more: Any) -> bytes:
    return json.dumps({**json.loads(BUNDLE[0]), **more}).encode()


def test_a_manifest_has_its_layers_in_order() -> None:
    found = parse_image_manifest(BUNDLE[0], f"{MANIFEST}; charset=utf-8")
    assert isinstance(found, Manifest)
    assert [layer.get_annotation("dev.tekton.image.name") for layer in found.layers] == ["build", "build", "deploy"]


def test_without_a_type_from_the_registry_the_document_says_it() -> None:
    assert isinstance(parse_image_manifest(BUNDLE[0], "application/json"), Manifest)
    assert "media type ''" in refusal(build_changed_manifest(mediaType=""), "")


@pytest.mark.parametrize(
    ("data", "content_type", "told"),
    [
        (b"not json", MANIFEST, "found another document"),
        (b"[]", MANIFEST, "found another document"),
        (build_changed_manifest(manifests=[]), MANIFEST, "either layers or manifests"),
        (BUNDLE[0], INDEX, "a document with mediaType"),
        (build_changed_manifest(mediaType=""), INDEX, "expected manifests in a document of type"),
        (b'{"schemaVersion": 2}', MANIFEST, "either layers or manifests"),
        (build_changed_manifest(schemaVersion=1), MANIFEST, "schema 1"),
        (b"{}", "application/vnd.docker.distribution.manifest.v1+prettyjws", "schema 1"),
        (BUNDLE[0], "text/html", "media type 'text/html'"),
        (
            build_changed_manifest(layers=[{"mediaType": "a", "digest": "md5:1", "size": 1}]),
            MANIFEST,
            "digest of entry 0: expected sha256: or sha512: with its digits, found 'md5:1'",
        ),
        (
            build_changed_manifest(layers=[{"mediaType": "a", "digest": digest_of(b""), "size": -1}]),
            MANIFEST,
            "expected entries with a size of 0 or more, found -1",
        ),
        (build_changed_manifest(layers=[{"mediaType": "a", "size": 1}]), MANIFEST, "found another document"),
        (b"[" * 100_000, MANIFEST, "found another document"),
        (b'{"a":' + b"[" * 100_000, MANIFEST, "found another document"),
    ],
)
def test_a_document_that_is_not_clearly_one_of_the_two_is_refused(data: bytes, content_type: str, told: str) -> None:
    assert told in refusal(data, content_type)


def index_of(*entries: dict[str, Any]) -> ImageIndex:
    found = parse_image_manifest(
        build_index((str(number).encode(), entry) for number, entry in enumerate(entries)), INDEX
    )
    assert isinstance(found, ImageIndex)
    return found


AMD, ARM = ({"platform": {"os": "linux", "architecture": each}} for each in ("amd64", "arm64"))
UNKNOWN = {"platform": {"os": "unknown", "architecture": "unknown"}}
ATTESTATION = {"annotations": {"vnd.docker.reference.type": "attestation-manifest"}}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (({},), 0),
        ((ARM,), 0),
        ((ARM, AMD), 1),
        ((ARM, {}, AMD), 1),
        ((ATTESTATION, ARM, UNKNOWN), 1),
        (({"mediaType": "application/spdx+json"}, ARM), 1),
    ],
)
def test_an_index_stands_for_its_only_manifest_or_the_one_for_no_platform(
    entries: tuple[dict[str, Any], ...], expected: int
) -> None:
    found = index_of(*entries)
    assert select_manifest(found, what="image a") is found.manifests[expected]


@pytest.mark.parametrize("entries", [(), (ATTESTATION,), (ARM, ARM), ({}, {}), (AMD, AMD)])
def test_an_index_that_does_not_say_which_is_refused(entries: tuple[dict[str, Any], ...]) -> None:
    with pytest.raises(ResolutionError, match="name one by its digest"):
        select_manifest(index_of(*entries), what="image a")


@pytest.mark.parametrize("kind", ["task", "Task", "TASK"])
def test_the_kind_is_found_in_any_case(kind: str) -> None:
    manifest = manifest_of(object_layer("build", "Pipeline"), object_layer("build"))
    assert select_layer(manifest, name="build", kind=kind, what="a").layer is manifest.layers[1]


def test_a_kind_that_ends_in_s_is_found() -> None:
    manifest = manifest_of(Layer(b"1", annotations=build_annotations("web", "ingress", "networking.k8s.io/v1")))
    assert select_layer(manifest, name="web", kind="Ingress", what="a").layer is manifest.layers[0]


def test_a_name_that_is_not_there_is_told_with_those_that_are_and_not_too_many_of_them() -> None:
    error = layer_refused(manifest_of(*(object_layer(f"task{number}") for number in range(20))))
    assert error.reason is Reason.NOT_FOUND
    assert "has no 'task/build'; available: 'task/task0', 'task/task1'" in error.message
    long = layer_refused(
        manifest_of(*(Layer(b"", annotations=build_annotations(f"{number}" * 5000)) for number in range(10)))
    )
    assert len(long.message) < 2000


def test_a_misspelt_name_of_a_layer_or_a_file_has_a_suggestion() -> None:
    bundle = layer_refused(manifest_of(object_layer("deploy"), object_layer("build")), "biuld")
    assert bundle.message.endswith("available: 'task/deploy', 'task/build'; did you mean 'task/build'?")
    files = layer_refused(manifest_of(build_titled_layer("ci/box.yaml"), build_titled_layer("b.yaml")), "ci/boks.yaml")
    assert files.message.endswith("; did you mean 'ci/box.yaml'?")


def test_each_mistake_of_a_bundle_has_a_refusal_of_its_own() -> None:
    complete = build_annotations("build")
    layers = {
        key: [object_layer("other"), Layer(b"1", annotations={k: v for k, v in complete.items() if k != key})]
        for key in complete
    }
    layers["21"] = [object_layer(f"task{number}") for number in range(21)]
    layers["twice"] = [object_layer("build"), object_layer("build")]
    errors = {key: layer_refused(manifest_of(*found)) for key, found in layers.items()}
    assert all(error.reason is Reason.UNSUPPORTED_CONTENT for error in errors.values())
    assert all(key in error.message for key, error in errors.items())
    assert len({error.message for error in errors.values()}) == 5


@pytest.mark.parametrize("media_type", ["application/pdf", "application/vnd.in-toto+dsse", ""])
def test_a_layer_of_an_unknown_media_type_is_refused_before_it_is_fetched(media_type: str) -> None:
    error = layer_refused(manifest_of(Layer(b"1", media_type, build_annotations("build"))))
    assert error.reason is Reason.UNSUPPORTED_CONTENT
    assert f"found media type {media_type!r}" in error.message


def test_a_bundle_of_twenty_layers_is_one() -> None:
    manifest = manifest_of(*(object_layer(f"task{number}") for number in range(20)))
    assert select_layer(manifest, name="task19", kind="task", what="a").layer is manifest.layers[19]


def test_one_object_in_two_versions_is_the_first_one() -> None:
    versions = [Layer(bytes([n]), annotations=build_annotations("build", "task", f"tekton.dev/v{n}")) for n in (1, 2)]
    manifest = manifest_of(*versions)
    assert select_layer(manifest, name="build", kind="task", what="a").layer is manifest.layers[0]


def build_titled_layer(title: str, media_type: str = YAML) -> Layer:
    message = {"org.opencontainers.image.title": title} if title else {}
    return Layer(build_task(title or "a"), media_type, message)


@pytest.mark.parametrize("name", ["build", "build.yaml"])
def test_a_file_of_a_plain_artefact_is_found_by_its_title(name: str) -> None:
    manifest = manifest_of(build_titled_layer("other.yaml"), build_titled_layer("build.yaml"), Layer(b"x", TAR_GZIP))
    assert select_layer(manifest, name=name, kind="task", what="a").layer is manifest.layers[1]


def test_an_artefact_of_one_file_without_a_title_is_that_file() -> None:
    manifest = manifest_of(build_titled_layer("", "application/vnd.example.box.v1+yaml"))
    assert select_layer(manifest, name="anything", kind="task", what="a").layer is manifest.layers[0]


def test_what_a_plain_artefact_does_not_have_or_has_twice_is_refused() -> None:
    assert "available: 'other.yaml'" in layer_refused(manifest_of(build_titled_layer("other.yaml"))).message
    assert (
        "2 with the title"
        in layer_refused(manifest_of(build_titled_layer("build.yaml"), build_titled_layer("build.yml"))).message
    )
    two = manifest_of(Layer(b"x"), Layer(b"y"))
    assert "layers of a media type such as application/yaml, or one archive" in layer_refused(two).message
    unknown = manifest_of(Layer(b"x", "application/vnd.example.binary"))
    assert "found application/vnd.example.binary" in layer_refused(unknown).message
    assert "expected layers, found none" in layer_refused(manifest_of()).message
