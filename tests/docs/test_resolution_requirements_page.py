"""docs/resolution/requirements.md contains every number, and every test that it names exists."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge_resolution._internal.reference_parsing import REFERENCE_SCHEMA

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/resolution/requirements.md").read_text()
TEST = re.compile(r"`([\w/-]+\.py)::(test_\w+)`")
ROWS = re.findall(r"^\| (R?\d+) \| (.+?) \| (.+?) \|$", PAGE, re.MULTILINE)


def test_no_requirement_and_no_case_is_left_out() -> None:
    expected = [*(f"R{number}" for number in range(1, 71)), *(str(number) for number in range(1, 81))]
    assert [row[0] for row in ROWS] == expected


def test_every_row_has_tests_or_says_why_not() -> None:
    for number, _, evidence in ROWS:
        is_named = TEST.search(evidence) and not re.sub(TEST, "", evidence).strip(", ")
        assert is_named or re.match(r"(out|not yet): \w", evidence), number


@pytest.mark.slow
def test_every_test_of_the_page_exists_and_runs() -> None:
    named = {found for _, _, evidence in ROWS for found in TEST.findall(evidence)}
    trees = {file: ast.parse((REPOSITORY / file).read_text()) for file, _ in named}
    running = {(file, name) for file, tree in trees.items() for name in list_running_tests(tree)}
    assert sorted(named - running) == []


def list_running_tests(tree: ast.Module) -> Iterator[str]:
    """Yield the tests of a module that run on Linux; `skipif` is for other systems."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            used = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            if not used & {"skip", "xfail", "importorskip"}:
                yield node.name


def test_the_cases_are_counted() -> None:
    summary = re.search(r"Of 80 cases (\d+) have tests, (\d+) is out and (\d+) are to come", PAGE)
    assert summary is not None
    cases = [evidence for number, _, evidence in ROWS if not number.startswith("R")]
    out, later = (sum(evidence.startswith(word) for evidence in cases) for word in ("out: ", "not yet: "))
    assert [int(number) for number in summary.groups()] == [80 - out - later, out, later]


def test_the_published_schema_is_that_of_the_code() -> None:
    published = json.loads((REPOSITORY / "docs/resolution/reference.schema.json").read_text())
    assert published == json.loads(json.dumps(REFERENCE_SCHEMA))
