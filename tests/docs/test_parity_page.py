"""The page about parity names modules, names and tests that exist, and leaves no rule without a test or a reason."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from tests.docs.known_names import is_known, list_known_names
from tests.docs.pages import REPOSITORY, read_page

PAGE = "docs/component-parity.md"
REASONS = ("Differs", "Not, because ", "Gap: ")

SPECIFICATION = [
    "Building a Component", "Resource registration options", "IncludeWhen vs. GatedBy", "Untracking vs. releasing",
    "Feature Gates", "Prerequisites", "Reconciliation Lifecycle", "Previewing desired state",
    "Cluster-scoped resources", "Status Model", "Condition priority and aggregation", "Grace Period", "Suspension",
    "ReconcileContext", "Persisting Status with FlushStatus", "Guards", "Component-Specific Guidance",
]  # fmt: skip
FRAMEWORK = [
    "Owner contract and reconcile context", "Component builder", "Resource options", "Feature gates",
    "Prerequisites of the framework", "Reconcile order with side effects", "Managed apply",
    "Read-only, delete, orphan", "Guards and data flow", "Lifecycle interfaces", "Status priority and aggregation",
    "Condition state machine and grace", "Suspension, exactly", "Flush", "Events", "Metrics",
    "Messages and error texts", "Generic layer for custom resources", "Mutation system", "Mutators", "Editors",
    "Primitives", "Preview and golden testing",
]  # fmt: skip
DECISIONS = "Where the specification leaves a choice"
NUMBERED = {"Condition state machine and grace": 16, "Suspension, exactly": 9, "Flush": 8, DECISIONS: 28}

# Entries of the second column that are no names of konverge.
FOREIGN = {"creationTimestamp", "Error"}


class Row(NamedTuple):
    """One rule."""

    rule: str
    where: str
    tests: str


def rows(page: str) -> list[Row]:
    lines = [line for line in page.splitlines() if line.startswith("| ") and line != "| rule | where | shown by |"]
    return [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]


def section(title: str) -> list[Row]:
    (found,) = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", read_page(PAGE), re.DOTALL | re.MULTILINE)
    return rows(found)


ROWS = rows(read_page(PAGE))
TEST = re.compile(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::(test_\w+)`")


def test_every_section_is_there_in_order() -> None:
    titles = re.findall(r"^##+ (.*)$", read_page(PAGE), re.MULTILINE)

    parts = ["The component specification", *SPECIFICATION, "The features of the Go framework", *FRAMEWORK, DECISIONS]
    assert titles == parts
    assert len(ROWS) > 350


@pytest.mark.parametrize("title", NUMBERED)
def test_no_number_is_left_out(title: str) -> None:
    numbers = [row.rule.partition(".")[0] for row in section(title)]
    assert [number for number in numbers if number.isdigit()] == [str(1 + each) for each in range(NUMBERED[title])]


def test_every_rule_has_a_test_or_the_reason_why_it_is_not_kept() -> None:
    assert [row.rule for row in ROWS if not TEST.search(row.tests) and not row.where.startswith(REASONS[1:])] == []


def test_the_rules_are_counted() -> None:
    documented = re.search(
        r"(\d+) are kept as they stand, (\d+) differ, (\d+) have no counterpart, (\d+) is a gap", read_page(PAGE)
    )
    excepted = [sum(row.where.startswith(reason) for row in ROWS) for reason in REASONS]

    assert documented is not None
    assert [int(number) for number in documented.groups()] == [len(ROWS) - sum(excepted), *excepted]


def test_every_test_of_the_page_exists() -> None:
    named = {found for row in ROWS for found in TEST.findall(row.tests)}
    files = {file: (REPOSITORY / file).read_text() for file, _ in named}

    assert [f"{file}::{test}" for file, test in sorted(named) if f"def {test}(" not in files[file]] == []
    assert [row.tests for row in ROWS if re.sub(TEST, "", row.tests).strip(", ")] == []


@pytest.mark.slow
def test_every_name_of_the_page_exists() -> None:
    names = list_known_names()
    sources = [
        REPOSITORY / "packages/konverge/src/konverge/_internal",
        *REPOSITORY.glob("packages/*/src/*/_internal"),
        *REPOSITORY.glob("packages/*/src"),
    ]
    documented = {code for row in ROWS for code in re.findall(r"`([^`]+)`", row.where)}
    modules = {code for code in documented if "/" in code}

    assert len(documented) > 150
    assert [module for module in sorted(modules) if not any((source / module).exists() for source in sources)] == []
    assert {code for code in documented - modules if not is_known(code, names)} == FOREIGN
