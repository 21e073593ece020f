"""A Katalog of each schema generation: the exact box and findings that result from it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from konverge_box._internal.file import BoxFileError, load_box
from konverge_box._internal.file.yaml_source import parse_source
from konverge_box._internal.katalog import KatalogImport, import_katalog
from konverge_box._internal.katalog.yaml_writer import write_yaml
from tests.box.katalog.katalogs import FOLDER, NAMES, format_findings, import_sample


@pytest.mark.parametrize("name", NAMES)
def test_a_katalog_becomes_this_box_and_lists_the_rest(name: str) -> None:
    found = import_sample((FOLDER / f"{name}.yaml").read_bytes(), f"{name}.yaml")

    assert found.text == (FOLDER / f"{name}.box.yaml").read_text()
    assert format_findings(found) == (FOLDER / f"{name}.listed.txt").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_the_box_that_comes_out_loads(name: str) -> None:
    box = load_box((FOLDER / f"{name}.box.yaml").read_text())

    assert box.spec.crds


@pytest.mark.parametrize("name", NAMES)
def test_each_finding_has_a_place_in_the_katalog(name: str) -> None:
    found = import_sample((FOLDER / f"{name}.yaml").read_bytes(), f"{name}.yaml")

    assert all(each.line > 1 and each.path and each.why and each.instead for each in found.listed)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected a document of the kind Katalog, found none"),
        ("kind: Motif", "found Motif"),
        ("a: [", "invalid YAML"),
        ("kind: Katalog\n" + "a: " + "[" * 100, "nests deeper"),
        ("kind: Katalog\n# " + "x" * (1 << 20), "at most 1 MiB"),
    ],
)
def test_what_is_no_katalog_is_refused_as_a_whole(text: str, problem: str) -> None:
    with pytest.raises(BoxFileError, match=problem):
        import_katalog(text)


def test_what_came_out_and_would_be_refused_is_listed() -> None:
    found = import_sample(
        """
kind: Katalog
metadata: {name: a}
spec:
  crds:
    app:
      apiTypes: {group: example.com, version: v1, kind: App, plural: apps}
      operatorBox:
        onReconcile:
          configMaps:
            - {name: same, forEach: {field: spec.names}, data: {a: b}}
"""
    )

    assert [each.what for each in found.listed] == ["the resulting box"]
    assert "each item makes an object with the same name" in found.listed[0].why


def test_a_second_document_is_listed() -> None:
    found = import_sample("kind: Katalog\nspec: {crds: {}}\n---\nkind: Komposer\n")

    assert [each.what for each in found.listed] == ["a document of the kind Komposer"]


def test_values_that_yaml_reads_in_another_way_are_listed() -> None:
    found = import_sample("kind: Katalog\nspec: {crds: {}, finalizers: [007]}\n")

    assert "leading zero" in found.listed[0].why


TRICKY = {
    "true": "yes",
    "a b": [
        "- a",
        "null",
        "0o644",
        "1.5",
        "x: y",
        " blank ",
        "\x85\u2028",
        "😀",
        "'\"\\",
        "",
        "line\nline",
        "a\n\nb\n",
    ],
    "nested": [[1, []], [{"a": {}, "b": None}], {"": [True, 1e100]}],
    "text": "first\n  second\nthird\n",
    "tabs": "a\tb",
}


def test_what_is_written_is_read_as_the_same() -> None:
    source = parse_source(write_yaml(TRICKY, {("nested", 1): "said\nof it"}), "box.yaml")[0]

    assert (source.value, source.errors) == (TRICKY, [])


ENTRY = "apiTypes: {group: example.com, version: v1, kind: App, plural: apps}"


def list_data(found: KatalogImport) -> dict[str, list[object]]:
    """Return the data of the ConfigMaps of each custom resource."""
    box = load_box(found.text)
    return {name: [resource.object["data"] for resource in crd.resources] for name, crd in box.spec.crds.items()}


def test_custom_resources_can_be_a_list() -> None:
    found = import_sample(
        f"""
kind: Katalog
spec:
  crds:
    - name: app-one
      {ENTRY}
      operatorBox: {{onReconcile: {{configMaps: [{{name: a, data: {{a: b}}}}]}}}}
    - apiTypes: {{group: example.com, version: v1, kind: OtherThing, plural: otherthings}}
      unknown: 1
      operatorBox: {{onReconcile: {{configMaps: [{{name: b, data: {{c: d}}}}]}}}}
    - text
"""
    )

    assert list_data(found) == {"appOne": [{"a": "b"}], "otherThing": [{"c": "d"}]}
    assert [(each.path, each.what) for each in found.listed] == [
        ("spec.crds[2]", "a value of an unexpected type"),
        ("spec.crds[2]", "a custom resource"),
        ("spec.crds[1].unknown", "an unknown field"),
    ]
    assert [each.line for each in found.listed] == [11, 11, 9]


@pytest.mark.parametrize("word", ["reconciler", "reconcile"])
def test_the_steps_of_an_entry_can_be_in_its_reconciler(word: str) -> None:
    found = import_sample(
        f"""
kind: Katalog
spec:
  crds:
    app:
      {ENTRY}
      {word}:
        workers: 4
        onReconcile: {{configMaps: [{{name: a, data: {{a: b}}}}]}}
        unknown: 1
"""
    )

    assert list_data(found) == {"app": [{"a": "b"}]}
    assert load_box(found.text).spec.crds["app"].reconcile.workers == 4
    assert [each.path for each in found.listed] == [f"spec.crds.app.{word}.unknown"]


@pytest.mark.parametrize("at", ["notes: NOTES\nspec:", "notes: {functions: NOTES}\nspec:", "spec:\n  notes: NOTES"])
def test_notes_can_be_a_list(at: str) -> None:
    notes = "[{name: shout, expression: '{{ toUpper .spec.word }}'}]"

    found = import_sample(
        f"""
kind: Katalog
{at.replace("NOTES", notes)}
  crds:
    app:
      {ENTRY}
      operatorBox: {{onReconcile: {{configMaps: [{{name: a, data: {{a: "{{{{ shout }}}}"}}}}]}}}}
"""
    )

    assert found.listed == ()
    assert list_data(found) == {"app": [{"a": "{{ toUpper(spec.word) }}"}]}


def build_definition(kind: str, field: str, scope: str) -> dict[str, Any]:
    schema = {"properties": {"spec": {"type": "object", "properties": {field: {"type": "string"}}}}}
    return {
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"kind": kind, "plural": f"{kind.lower()}s"},
            "versions": [{"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


TWO = yaml.safe_dump_all([build_definition("Other", "size", "Cluster"), build_definition("App", "color", "Namespaced")])


def import_with_definitions(api: str) -> KatalogImport:
    text = f"kind: Katalog\nspec: {{crds: {{app: {{crdFile: two.yaml, apiTypes: {api}}}}}}}\n"
    return import_katalog(text, read=lambda name: TWO.encode())


@pytest.mark.parametrize("api", ["{kind: App}", "{plural: apps}", "{group: example.com, version: v1, kind: App}"])
def test_the_definition_of_the_kind_is_used(api: str) -> None:
    resource = load_box(import_with_definitions(api).text).spec.crds["app"].resource

    assert (resource.kind, resource.plural, resource.scope) == ("App", "apps", "Namespaced")
    assert resource.schema is not None
    assert list(resource.schema["spec"]["properties"]) == ["color"]


@pytest.mark.parametrize(
    ("api", "why"),
    [
        ("{}", "it contains several CustomResourceDefinitions (Other, App)"),
        ("{kind: Third}", "it contains no CustomResourceDefinition of Third, only of Other, App"),
    ],
)
def test_a_definition_that_is_not_certain_is_reported(api: str, why: str) -> None:
    found = import_with_definitions(api)

    assert why in " ".join(each.why for each in found.listed)
