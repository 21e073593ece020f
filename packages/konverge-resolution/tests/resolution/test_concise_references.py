"""Concise references: one URL stands for a resolver and its parameters, and nothing else passes."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.concise_references import parse_concise_reference
from konverge_resolution._internal.reference_parsing import find_references, parse_reference
from konverge_resolution._internal.resolvers import load_resolvers

BOXES = "https://git.example.com/platform/boxes"
FORMS = {
    "git+https://git.example.com/platform/boxes@v1.4#shop/box.yaml": (
        "git", {"url": BOXES, "revision": "v1.4", "pathInRepo": "shop/box.yaml"}
    ),
    "git+https://git.example.com/platform/boxes#box.yaml": ("git", {"url": BOXES, "pathInRepo": "box.yaml"}),
    "GIT+HTTPS://git.example.com:8443/boxes.git@feature/x?gitToken=boxes#a%20b.yaml": (
        "git",
        {"url": "https://git.example.com:8443/boxes.git", "revision": "feature/x", "pathInRepo": "a b.yaml",
         "gitToken": "boxes"},
    ),
    "git+ssh://git@git.example.com/boxes@main#box.yaml?gitSSHSecret=key": (
        "git",
        {"url": "ssh://git@git.example.com/boxes", "revision": "main", "pathInRepo": "box.yaml", "gitSSHSecret": "key"},
    ),
    "git+https://git.example.com/%40team/boxes@v1#box.yaml": (
        "git", {"url": "https://git.example.com/%40team/boxes", "revision": "v1", "pathInRepo": "box.yaml"}
    ),
    "oci://registry.example.com:5000/team/boxes:1.4#task/build": (
        "bundles", {"bundle": "registry.example.com:5000/team/boxes:1.4", "kind": "task", "name": "build"}
    ),
    f"oci://registry.example.com/boxes@sha256:{'0' * 64}#build": (
        "bundles", {"bundle": f"registry.example.com/boxes@sha256:{'0' * 64}", "name": "build"}
    ),
    "oci://registry.example.com/flux:1#tasks/build.yaml": (
        "bundles", {"bundle": "registry.example.com/flux:1", "name": "tasks/build.yaml"}
    ),
    "hub://task/git-clone@0.9": ("hub", {"kind": "task", "name": "git-clone", "version": "0.9"}),
    "hub://my-catalog/task/git-clone@%3E%3D0.7%20%3C2?type=artifact": (
        "hub",
        {"catalog": "my-catalog", "kind": "task", "name": "git-clone", "version": ">=0.7 <2", "type": "artifact"},
    ),
    "cluster://catalog/task/build?apiVersion=tekton.dev/v1": (
        "cluster", {"namespace": "catalog", "kind": "task", "name": "build", "apiVersion": "tekton.dev/v1"}
    ),
    "https://example.com/a/box.yaml?version=2&x=@y": ("http", {"url": "https://example.com/a/box.yaml?version=2&x=@y"}),
    "http://127.0.0.1:8080/box.yaml": ("http", {"url": "http://127.0.0.1:8080/box.yaml"}),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FORMS.items())
def test_a_url_stands_for_a_resolver_and_its_parameters(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert parse_concise_reference(text) == expected


def test_every_form_has_parameters_of_its_resolver() -> None:
    parameters = {resolver.name: resolver.parameters for resolver in load_resolvers()}
    for text in FORMS:
        name, params = parse_concise_reference(text)
        assert params.keys() <= parameters[name].keys()


WRONG = {
    "box.yaml": "one of the schemes",
    "gti+https://git.example.com/boxes#a": "did you mean",
    "file:///etc/passwd": "one of the schemes",
    "git+https://git.example.com/boxes": "the form git+https://HOST",
    "git+https:///boxes#a": "the form git+https://HOST",
    "git+https://git.example.com/boxes@#a": "the form git+https://HOST",
    "git+https://[x/boxes#a": "the form git+https://HOST",
    "oci://registry.example.com/boxes:1": "the form oci://REGISTRY",
    "oci://boxes#a": "the form oci://REGISTRY",
    "hub://git-clone@1": "the form hub://KIND",
    "hub://task/git-clone": "the form hub://KIND",
    "hub://a/b/c/d@1": "the form hub://KIND",
    "cluster://catalog/task": "the form cluster://NAMESPACE",
    "cluster://catalog/task/a/b": "the form cluster://NAMESPACE",
    "https://example.com/a#b": "without a fragment",
    "git+https://git.example.com/boxes@v1?revision=v2#a": "each parameter once, found 'revision' twice",
    "oci://registry.example.com/boxes?name=a#b": "each parameter once, found 'name' twice",
    "git+https://git.example.com/bo xes#a": "printable characters",
    "git+https://git.example.com/b\u00f6xes#a": "printable characters",
    f"git+https://git.example.com/{'x' * 5000}#a": "at most 4096",
}


@pytest.mark.parametrize(("text", "told"), WRONG.items())
def test_another_text_is_refused_and_not_repeated(text: str, told: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        parse_concise_reference(text)
    assert caught.value.reason is Reason.INVALID_PARAMETERS
    assert told in caught.value.message
    assert text not in caught.value.message


@given(st.sampled_from(["git+https", "oci", "hub", "cluster", "https", "x"]), st.text(max_size=40))
def test_whatever_it_is_it_is_parsed_or_refused(scheme: str, rest: str) -> None:
    with suppress(ResolutionError):
        resolver, params = parse_concise_reference(f"{scheme}://{rest}")
        assert resolver
        assert all(isinstance(value, str) for value in params.values())


def test_a_file_may_have_one_in_place_of_a_resolver() -> None:
    written = parse_reference({
        "url": "git+https://git.example.com/boxes@v1#box.yaml",
        "digest": f"sha256:{'0' * 64}",
        "orElse": [{"url": "hub://task/shop@1.2.0"}, {"resolver": "http", "params": {"url": "https://a.example/b"}}],
    })  # fmt: skip
    assert [choice.resolver for choice in written.choices] == ["git", "hub", "http"]
    assert written.choices[0].params["pathInRepo"] == "box.yaml"
    assert str(written.choices[0].digest) == f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"url": "git+https://a.example/b#c", "resolver": "git"}, "the reference.resolver: no such field"),
        ({"url": "git+https://a.example/b#c", "params": {}}, "the reference.params: no such field"),
        ({"url": 7}, "the reference.url: expected a URL, found int"),
        ({"url": "banana"}, "the reference.url: the concise reference: expected one of the schemes"),
        ({"url": "git+https://user:hunter2@a.example/b#c"}, "a user or password before its host"),
    ],
)
def test_a_wrong_one_in_a_file_is_told_with_its_field(value: dict[str, object], told: str) -> None:
    with pytest.raises(ResolutionError) as caught:
        parse_reference(value)
    assert told in caught.value.message
    assert "hunter2" not in caught.value.message


def test_in_a_definition_only_what_is_surely_a_reference_is_followed() -> None:
    definition = {
        "taskRef": {"url": "oci://registry.example.com/boxes:1#build"},
        "imports": [{"url": "git+https://a.example/b#c"}, {"url": "https://a.example/b"}],
        "secretRef": {"url": "https://vault.example/secret"},
        "otherRef": {"url": "banana"},
    }
    assert [where for where, _ in find_references(definition)] == ["taskRef", "imports[0]", "imports[1]"]
