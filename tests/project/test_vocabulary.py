"""The vocabulary check finds its targets, and its allowances only shrink."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools import vocabulary

MODULE = Path("packages/konverge/src/konverge/_internal/cache/store.py")


def find_rules(source: str, path: Path = MODULE) -> list[tuple[str, str]]:
    return [(each.rule, each.text) for each in vocabulary.findings_in_python(path, source)]


@pytest.mark.parametrize("name", ["told", "_kept_pages", "skipped_rows"])
def test_a_function_whose_name_begins_with_a_participle_is_found(name: str) -> None:
    assert find_rules(f"def {name}(): ...") == [("participle function", name)] + (
        [("banned name", name)] if name == "told" else []
    )


@pytest.mark.parametrize("source", [
    "def feed(): ...", "def find_kept(): ...", "@property\ndef kept(self): ...", "@pytest.fixture()\ndef kept(): ...",
])  # fmt: skip
def test_a_verb_a_property_and_a_fixture_are_not(source: str) -> None:
    assert find_rules(source) == []


@pytest.mark.parametrize("source", ['x = "for nobody"', "x = 1  # for nobody", 'x = f"""\nfor nobody"""'])
def test_a_banned_phrase_is_found_in_strings_and_comments(source: str) -> None:
    assert find_rules(source) == [("banned phrase", "nobody")]


def test_each_banned_phrase_of_a_string_counts_and_code_inside_of_it_does_not() -> None:
    source = 'x = (\n    f"to {whom}, so "\n    f"many for {y} and for nobody"\n)\n'

    assert find_rules(source) == [("banned phrase", "so many"), ("banned phrase", "nobody")]


def test_a_banned_phrase_is_found_on_a_page() -> None:
    (found,) = vocabulary.findings_in_markdown(Path("docs/page.md"), "# Title\n\nA list, all that there is.\n")

    assert (found.area, found.rule, found.line, found.text) == ("docs", "banned phrase", 3, "all that")


def test_a_short_docstring_is_found_except_in_tests() -> None:
    source = 'def find():\n    """The one."""\n'

    assert find_rules(source) == [("short docstring", "The one.")]
    assert find_rules(source, Path("tests/project/test_one.py")) == []


@pytest.mark.parametrize(("path", "area"), [
    ("packages/konverge/src/konverge/_internal/cache/store.py", "konverge/cache"),
    ("packages/konverge-box/src/konverge_box/_internal/packaging.py", "konverge_box"),
    ("packages/konverge-box/tests/box/test_one.py", "konverge-box/tests"),
    ("docs/decisions/README.md", "docs"),
    ("README.md", "root"),
])  # fmt: skip
def test_a_package_or_a_folder_is_an_area(path: str, area: str) -> None:
    assert vocabulary.area_of(Path(path)) == area


def test_only_the_count_that_is_allowed_passes() -> None:
    findings = list(vocabulary.findings_in_python(MODULE, "def kept(): ...\ndef made(): ...\n"))

    assert vocabulary.compare(findings, {"participle function": {"konverge/cache": 2}}) == []
    assert vocabulary.compare(findings, {"participle function": {"konverge/cache": 1}}) == [
        "konverge/cache: participle function: expected at most 1, found 2:",
        f"    {MODULE}:1: kept",
        f"    {MODULE}:2: made",
    ]
    assert vocabulary.compare(findings, {"participle function": {"konverge/cache": 3}}) == [
        "konverge/cache: participle function: 2 are left of 3 allowed: run tools/vocabulary.py --write"
    ]


def test_an_allowance_that_nothing_uses_anymore_fails() -> None:
    assert vocabulary.compare([], {"banned phrase": {"docs": 1}}) == [
        "docs: banned phrase: 0 are left of 1 allowed: run tools/vocabulary.py --write"
    ]


@pytest.mark.parametrize("path", [MODULE, Path("tests/project/test_one.py")])
def test_a_docstring_that_begins_with_a_question_word_is_found(path: Path) -> None:
    source = 'def find():\n    """What the server holds of one kind."""\n'

    assert find_rules(source, path) == [("question docstring", "What the server holds of one kind.")]
    assert find_rules('def find():\n    """Return the object, or None when there is none."""\n', path) == []
