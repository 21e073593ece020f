"""A Katalog of each schema generation: the exact box and findings that result from it."""

from __future__ import annotations

import pytest

from konverge_box._internal.file import BoxFileError, load_box
from konverge_box._internal.file.yaml_source import parse_source
from konverge_box._internal.katalog import import_katalog
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
