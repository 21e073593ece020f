"""References in files, and those that are a path beside the definition in which they stand."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_resolution import Digest, Reason, Reference, ResolutionError
from konverge_resolution._internal.reference_parsing import find_references, parse_reference
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers.bundles import BundlesResolver
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution.relative_references import ParentDefinition, build_relative_reference, join_path
from tests.resolution.fake_resolver import FakeResolver
from tests.resolution.fake_source import WEB, FakeSource, build_document, build_engine, build_reference

pytestmark = pytest.mark.anyio

DIGEST = str(Digest.of(b"a"))


def test_a_reference_is_read_with_parameters_as_a_mapping_and_as_tekton_writes_them() -> None:
    plain = parse_reference({"resolver": "git", "params": {"url": "u", "labels": ["a"]}, "digest": DIGEST})
    listed = [{"name": "url", "value": "u"}, {"name": "labels", "value": ["a"]}]
    assert parse_reference({"resolver": "git", "params": listed, "digest": DIGEST}) == plain
    assert plain.choices == (Reference("git", {"url": "u", "labels": ["a"]}, Digest.parse(DIGEST)),)


def test_a_reference_without_a_resolver_asks_those_that_the_operator_has_as_default_in_order() -> None:
    found = parse_reference({"params": {"name": "a"}}, default_resolvers=("cluster", "hub"))
    assert [each.resolver for each in found.choices] == ["cluster", "hub"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("git", "expected a mapping with resolver and params, with url, or with path, found 'git'"),
        ({}, "the reference.resolver: expected the name of a resolver, found nothing"),
        ({"params": {"a": "b"}}, "the reference.resolver: expected the name of a resolver, found nothing"),
        ({"resolver": 1}, "the reference.resolver: expected the name of a resolver, found int"),
        ({"resolver": "Git"}, "resolver 'Git'"),
        ({"resolver": "git", "parms": {}}, "the reference.parms: no such field; expected one of digest, orElse"),
        ({"resolver": "git", "params": "u"}, "the reference.params: expected a mapping"),
        ({"resolver": "git", "params": [{"name": "a"}]}, "the reference.params[0]: expected a name and a value"),
        (
            {"resolver": "git", "params": [{"name": "a", "value": "b"}, {"name": "a", "value": "c"}]},
            "the reference.params[1].name: expected each parameter once",
        ),
        ({"resolver": "git", "params": {"a": 1}}, "parameter 'a': expected text"),
        ({"resolver": "git", "digest": "md5:1"}, "the reference.digest: expected sha256:"),
        ({"resolver": "git", "orElse": [{"path": "a"}]}, "the reference.orElse[0].resolver: expected the name"),
        ({"resolver": "a", "orElse": [{"resolver": "b"}] * 8}, "expected at most 8 sources"),
        ({"path": ""}, "the reference.path: expected a path, found ''"),
        ({"path": "a", "resolver": "git"}, "the reference.resolver: no such field; expected one of digest, path"),
    ],
)
def test_what_is_no_reference_is_refused_with_its_place(value: Any, told: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        parse_reference(value)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
    assert told in caught.value.message


def test_the_place_of_a_reference_shows_no_name_of_a_field_that_a_terminal_would_obey() -> None:
    reference = {"resolver": "git"}
    ((odd, _), (long, _)) = find_references({"a\x1b[31m\n": {"ref": reference}, "b" * 1000: {"ref": reference}})
    assert odd.isprintable()
    assert (odd, len(long)) == (r"'a\x1b[31m\n'.ref", 63 + len("''.ref"))


def test_references_are_found_by_their_field_and_their_form_alone() -> None:
    git = {"resolver": "git", "params": []}
    definition = {
        "spec": {
            "tasks": [{"taskRef": git}, {"taskRef": {"name": "local", "kind": "Task"}}, {"taskRef": {"path": "a"}}],
            "steps": [{"ref": {"resolver": "hub"}, "envFrom": [{"configMapRef": {"name": "a"}}]}],
            "imports": [{"path": "b"}, "c"],
            "volume": {"path": "/data", "hostPath": {"path": "/x"}, "fieldRef": {"fieldPath": "a"}},
            "otherRef": {"path": "a", "namespace": "b"},
        }
    }
    assert [where for where, _ in find_references(definition)] == [
        "spec.tasks[0].taskRef",
        "spec.tasks[2].taskRef",
        "spec.steps[0].ref",
        "spec.imports[0]",
    ]


@pytest.mark.parametrize(
    ("file", "path", "found"),
    [
        ("a/b.yaml", "c.yaml", "a/c.yaml"),
        ("a/b.yaml", "./c.yaml", "a/c.yaml"),
        ("a/b.yaml", "../c.yaml", "c.yaml"),
        ("a/b.yaml", "../a/./d//e.yaml", "a/d/e.yaml"),
        ("a/b.yaml", "/c.yaml", "c.yaml"),
        ("b.yaml", "größe.yaml", "größe.yaml"),
        ("b.yaml", "a..b/c.yaml", "a..b/c.yaml"),
    ],
)
def test_a_path_counts_from_the_file_that_has_it(file: str, path: str, found: str) -> None:
    assert join_path(file, path) == found


@pytest.mark.parametrize(
    "path",
    [
        "../../c",
        "../../a/b",
        "/../c",
        "",
        "c/",
        ".",
        "..",
        "../..",
        "a\\..\\c",
        "%2e%2e/%2e%2e/c",
        "a%2f..%2fc",
        "a\0b",
    ],
)
def test_a_path_never_leads_out_of_its_source(path: str) -> None:
    with pytest.raises(ResolutionError, match="path ") as caught:
        join_path("a/b.yaml", path)
    assert caught.value.reason is Reason.INVALID_PARAMETERS


async def test_what_a_definition_refers_to_by_a_path_comes_from_the_version_it_came_from_itself() -> None:
    library = FakeSource(
        {
            "1": {"ci/p.yaml": build_document("p"), "t.yaml": build_document("old")},
            "2": {"t.yaml": build_document("new")},
        }
    )
    engine = build_engine(library)
    reference = build_reference("ci/p.yaml")
    outcome = await engine.resolve(reference, WEB)
    library.heads["main"] = "2"

    found = build_relative_reference(engine.registry, ParentDefinition(reference, outcome.resolved), "../t.yaml")
    assert found == build_reference("t.yaml", "1")
    assert (await engine.resolve(found, WEB)).object["metadata"]["name"] == "old"


def test_the_choice_of_a_configuration_is_inherited_and_the_digest_is_not() -> None:
    reference = Reference("library", {"path": "a", "configKey": "x", "cache": "never"}, Digest.of(b"a"))
    resolved = ResolvedContent(b"", Provenance("u", {}), pinned={"path": "a", "version": "3"})
    found = build_relative_reference(ResolverRegistry.of([FakeSource()]), ParentDefinition(reference, resolved), "b")
    assert found == Reference("library", {"path": "b", "version": "3", "configKey": "x", "cache": "never"})


def test_a_source_without_paths_says_so() -> None:
    container = ParentDefinition(Reference("shelf", {"url": "u"}), ResolvedContent(b"", Provenance("u", {})))
    with pytest.raises(ResolutionError, match="resolver 'shelf' supports no relative references; name a resolver"):
        build_relative_reference(ResolverRegistry.of([FakeResolver()]), container, "b")


def test_git_takes_another_file_of_the_same_commit_of_the_same_repository() -> None:
    pinned = {"url": "https://a.example/r", "revision": "a" * 40, "pathInRepo": "ci/p.yaml", "gitToken": "mine"}
    container = ParentDefinition(
        Reference("git", {**pinned, "revision": "main"}), ResolvedContent(b"", Provenance("u", {}), pinned=pinned)
    )
    found = build_relative_reference(ResolverRegistry.of([GitResolver()]), container, "../tasks/t.yaml")
    assert found.params == {**pinned, "pathInRepo": "tasks/t.yaml"}


@pytest.mark.parametrize(
    ("path", "found"),
    [("other", {"kind": "task", "name": "other"}), ("../pod/other", {"kind": "pod", "name": "other"})],
)
def test_the_cluster_has_other_objects_of_the_namespace(path: str, found: dict[str, str]) -> None:
    reference = Reference("cluster", {"kind": "task", "name": "a", "namespace": "n"})
    container = ParentDefinition(reference, ResolvedContent(b"", Provenance("u", {})))
    assert build_relative_reference(ResolverRegistry.of([ClusterResolver()]), container, path).params == {
        "namespace": "n",
        **found,
    }
    for out, message in (
        ("../../x/secret/other", "expected a path within the source"),
        ("pod/other", "expected a name, or ../kind"),
    ):
        with pytest.raises(ResolutionError, match=f"^path '{out}': {message}"):
            build_relative_reference(ResolverRegistry.of([ClusterResolver()]), container, out)


@pytest.mark.parametrize(
    ("path", "found"),
    [("other", {"kind": "task", "name": "other"}), ("../pipeline/other", {"kind": "pipeline", "name": "other"})],
)
def test_a_bundle_has_other_layers_of_the_same_image(path: str, found: dict[str, str]) -> None:
    image = f"registry.example/team/boxes@{Digest.of(b'a')}"
    reference = Reference("bundles", {"bundle": "registry.example/team/boxes:main", "kind": "task", "name": "a"})
    resolved = ResolvedContent(b"", Provenance("u", {}), pinned={**reference.params, "bundle": image})
    registry = ResolverRegistry.of([BundlesResolver()])
    assert build_relative_reference(registry, ParentDefinition(reference, resolved), path).params == {
        "bundle": image,
        **found,
    }
    with pytest.raises(ResolutionError, match="path "):
        build_relative_reference(registry, ParentDefinition(reference, resolved), "../other")


def test_http_takes_another_file_of_the_server_without_the_digest_and_the_query() -> None:
    params = {"url": "https://a.example/ci/p.yaml?token=hunter2", "http-token-secret": "mine", "digest": DIGEST}
    container = ParentDefinition(Reference("http", params), ResolvedContent(b"", Provenance("u", {}), pinned=params))
    found = build_relative_reference(ResolverRegistry.of([HttpResolver()]), container, "../tasks/t.yaml")
    assert found.params == {"url": "https://a.example/tasks/t.yaml", "http-token-secret": "mine"}
    with pytest.raises(ResolutionError, match="expected a path within the source"):
        build_relative_reference(ResolverRegistry.of([HttpResolver()]), container, "../../x")
