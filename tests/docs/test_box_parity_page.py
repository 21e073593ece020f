"""The page about the parity of boxes names tests that exist, and leaves no rule without a test or a reason."""

from __future__ import annotations

import re

from tests.docs.pages import REPOSITORY, read_page

PAGE = "docs/box-parity.md"
REASONS = ("Differs: ", "Not, because ", "Gap: ")
TEST = re.compile(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::(test_\w+)`")

STEPS = [
    "Order", "Expressions", "Normalization", "Mutation", "Validation", "Observation", "External calls", "Repetition",
    "Conditions", "Groups and drift", "Deletion", "Providers", "Status", "Errors, degraded, isolation",
]  # fmt: skip
PARTS = ["Where that system has two answers", "Known mistakes of that system", "Bad input"]

ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:4]]
    for line in read_page(PAGE).splitlines()
    if line.startswith("| ") and line != "| rule | here | shown by |"
]


def test_every_section_is_there_in_order() -> None:
    titles = re.findall(r"^##+ (.*)$", read_page(PAGE), re.MULTILINE)

    assert titles == ["The steps", *STEPS, *PARTS]


def test_each_of_the_questions_with_two_answers_has_one() -> None:
    (part,) = re.findall(rf"^## {PARTS[0]}\n(.*?)(?=^## )", read_page(PAGE), re.DOTALL | re.MULTILINE)

    assert re.findall(r"^\| (\d+)\. ", part, re.MULTILINE) == [str(number) for number in range(1, 18)]


def test_every_rule_has_a_test_or_the_reason_why_it_is_not_kept() -> None:
    assert [rule for rule, here, tests in ROWS if not TEST.search(tests) and not here.startswith(REASONS[1:])] == []


def test_the_rules_are_counted() -> None:
    summary = re.search(
        r"Of (\d+) rows, (\d+) are kept, (\d+) differ, (\d+) have no counterpart, (\d+) are gaps", read_page(PAGE)
    )
    excepted = [sum(here.startswith(reason) for _, here, _ in ROWS) for reason in REASONS]

    assert summary is not None
    assert [int(number) for number in summary.groups()] == [len(ROWS), len(ROWS) - sum(excepted), *excepted]


def test_every_test_of_the_page_exists() -> None:
    named = {found for _, _, tests in ROWS for found in TEST.findall(tests)}
    files = {file: (REPOSITORY / file).read_text() for file, _ in named}

    assert len(named) > 150
    assert [f"{file}::{test}" for file, test in sorted(named) if f"def {test}(" not in files[file]] == []
    assert [tests for _, _, tests in ROWS if re.sub(TEST, "", tests).strip(", ")] == []
