"""Errors that only compiling finds, with their positions in the file."""

from textwrap import dedent

import pytest

from konverge_box._internal.file import BoxFileError, load_box
from konverge_box._internal.runtime.box_validation import find_box_errors, load_valid_box
from tests.box.running.box_harness import build_box, build_custom_resource

TEXT = """\
apiVersion: konverge.dev/v1alpha1
kind: OperatorBox
metadata: {name: library}
spec:
  crds:
    shelf:
      resource: {apiVersion: boxes.konverge.test/v1, kind: Shelf}
"""


def complaints(steps: str, more: str = "") -> list[str]:
    text = TEXT + "".join(f"      {line}\n" for line in dedent(steps).strip().splitlines()) + more
    load_box(text)  # loading finds no error
    return [str(mistake) for mistake in find_box_errors(text, file="f")]


def test_each_call_that_cannot_be_made_is_a_mistake_with_its_place() -> None:
    found = complaints(
        """
        external:
          - name: plain
            url: https://example.com/
            query: select 1
          - name: cache
            protocol: redis
            url: redis://example.com/
            query: FLUSHALL
          - name: fine
            url: https://example.com/
        """
    )

    assert [each.partition(": expected")[0] for each in found] == [
        "f:11:11: spec.crds.shelf.external[0].query",
        "f:15:11: spec.crds.shelf.external[1].query",
    ]
    assert "found 'FLUSHALL'" in found[1]


def test_fields_that_a_provider_does_not_have_are_mistakes() -> None:
    pytest.importorskip("psycopg")
    found = complaints(
        """
        providers:
          postgres:
            - kind: Databse
              name: app
        """,
        "  providers: {postgres: {settings: {host: db.example.com, user: admin, password: p}}}\n",
    )

    assert found[0].startswith("f:10:13: spec.crds.shelf.providers.postgres[0].kind: postgres has no kind Databse")


def test_a_provider_that_is_not_installed_is_a_mistake() -> None:
    (found,) = complaints(
        """
        providers:
          missing:
            - kind: Thing
              name: app
        """
    )

    assert found.startswith("f:9:9: spec.crds.shelf.providers.missing: provider missing is not installed")


def test_a_definition_that_no_server_would_take_is_a_mistake() -> None:
    (found,) = find_box_errors(TEXT.rstrip("}\n") + ", additionalPrinterColumns: [{name: a}]}\n", file="f")

    assert (found.line, found.path) == (7, "spec.crds.shelf.resource")
    assert "additionalPrinterColumns[0].type is missing" in found.message


def test_a_box_with_such_a_mistake_is_not_loaded() -> None:
    text = TEXT + "      external: [{name: a, url: 'ftp://example.com/'}]\n"

    with pytest.raises(BoxFileError, match=r"b.yaml:8:28: spec.crds.shelf.external\[0\].url: expected a URL"):
        load_valid_box(text, file="b.yaml")


def test_a_box_without_mistakes_is_loaded() -> None:
    assert build_box(shelf=build_custom_resource("Shelf")).spec.crds.keys() == {"shelf"}
    assert find_box_errors(TEXT) == ()


@pytest.mark.parametrize(
    ("providers", "message"),
    [
        ("", "host, user are missing; add them to spec.providers.postgres.settings"),
        (
            "  providers: {postgres: {settings: {host: a}, secretRefs: {password: {name: a, key: b}}}}\n",
            "user is missing; add it to spec.providers.postgres.settings",
        ),
    ],
)
def test_a_missing_setting_is_reported_where_the_provider_is_used(providers: str, message: str) -> None:
    pytest.importorskip("psycopg")
    found = complaints("providers:\n  postgres:\n    - {kind: Database, name: app}\n", providers)

    assert found == [f"f:9:9: spec.crds.shelf.providers.postgres: {message}"]
