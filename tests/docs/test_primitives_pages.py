"""The pages about primitives match the code: every kind, its results for the example statuses, every method."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import konverge.mutation
import konverge.primitives
from konverge.kube import Object
from konverge.mutation import Editor, ListEditor
from konverge.primitives import IntegrationKind, Operation, Primitive, StaticKind, TaskKind, WorkloadKind
from tests.docs.pages import REPOSITORY, read_page, save_page_code

PAGES = sorted(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("docs/primitives/*.md"))
OVERVIEW, EDITORS = "docs/primitives.md", "docs/primitives/editors.md"
CATEGORIES: dict[type[Any], str] = {
    StaticKind: "static",
    WorkloadKind: "workload",
    TaskKind: "task",
    IntegrationKind: "integration",
    konverge.primitives.Workload: "workload",
    konverge.primitives.Task: "task",
    konverge.primitives.Integration: "integration",
}
KINDS: dict[str, type[Primitive[Any]]] = {
    name: found
    for name, found in vars(konverge.primitives).items()
    if inspect.isclass(found) and issubclass(found, Primitive) and not inspect.isabstract(found)
}
SHARED = {name: found for name, found in vars(konverge.mutation).items() if name.endswith("Mutator")}
EDITOR_CLASSES: dict[str, type[Any]] = {
    name: found
    for name, found in vars(konverge.mutation).items()
    if inspect.isclass(found) and issubclass(found, Editor | ListEditor) and found not in (Editor, ListEditor)
}


class Row(NamedTuple):
    kind: str
    cells: list[str]


def sections(page: str) -> Iterator[tuple[str, str]]:
    """Yield the heading and the text of each section."""
    for section in re.split(r"^## ", read_page(page), flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        yield heading, text


def rows(text: str, *headings: str) -> list[list[str]]:
    """Return the cells of the tables with these headings."""
    table = re.compile(rf"^\| {re.escape(' | '.join(headings))} \|\n\|[-|]+\|\n((?:\|.*\n)+)", re.MULTILINE)
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for found in table.findall(text)
        for line in found.splitlines()
    ]


def facts(text: str) -> dict[str, str]:
    """Return the first table of a kind's section."""
    (lines,) = re.findall(r"^\| \| \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    return {name.strip(): fact.strip() for name, fact in (line.strip("|").split("|", 1) for line in lines.splitlines())}


SECTIONS = dict(found for page in PAGES if page != EDITORS for found in sections(page))
STATUSES = [
    Row(kind, cells)
    for kind, text in SECTIONS.items()
    for cells in rows(text, "it reports", "it is", "after its grace")
]
SUSPENDED = [
    Row(kind, cells) for kind, text in SECTIONS.items() for cells in rows(text, "suspended, it reports", "it is")
]


def live_object(cell: str) -> Object:
    found: Object = yaml.safe_load("{" + cell.strip("`") + "}")
    return found


def find_example_code(row: Row) -> str:
    return f"{row.kind}: {row.cells[0]}"


def methods_of(cls: type[Any]) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))}


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)`", cell))


def test_every_primitive_has_a_section_and_is_in_the_overview() -> None:
    listed = [kind.strip() for cells in rows(read_page(OVERVIEW), "page", "kinds")[:-1] for kind in cells[1].split(",")]

    assert sorted(SECTIONS) == sorted(KINDS)
    assert sorted(listed) == sorted(KINDS)


@pytest.mark.parametrize("kind", SECTIONS)
def test_the_table_of_a_kind_has_its_category_and_whether_suspension_deletes_it(kind: str) -> None:
    documented, cls = facts(SECTIONS[kind]), KINDS[kind]

    assert list(documented) == ["category", "ready when", "grace", "suspend", "deleted on suspend", "mutations"]
    assert documented["category"] == next(name for base, name in CATEGORIES.items() if issubclass(cls, base))
    assert documented["deleted on suspend"] == ("yes" if getattr(cls, "deletes_on_suspend_by_default", False) else "no")
    assert all(documented.values())


@pytest.mark.parametrize("row", STATUSES, ids=find_example_code)
def test_a_live_object_is_what_the_page_says(row: Row) -> None:
    cls: Any = KINDS[row.kind]
    reported, documented, graded = row.cells
    live = live_object(reported)

    found = cls.default_converging_status(live, Operation.NONE)

    assert f"`{found.status}`: {found.reason}" == documented
    grades = hasattr(cls, "default_grace_status")
    assert (f"`{cls.default_grace_status(live).status}`" if grades else "not graded") == graded


@pytest.mark.parametrize("row", SUSPENDED, ids=find_example_code)
def test_a_suspended_object_is_what_the_page_says(row: Row) -> None:
    cls: Any = KINDS[row.kind]
    reported, documented = row.cells

    found = cls.default_suspension_status(live_object(reported))

    assert f"`{found.status}`: {found.reason}" == documented


@pytest.mark.parametrize("kind", [kind for kind, cls in KINDS.items() if hasattr(cls, "default_converging_status")])
def test_a_kind_that_is_judged_shows_a_status_of_each_answer_that_matters(kind: str) -> None:
    example_ready = [
        row for row in STATUSES if row.kind == kind and re.match("`(Healthy|Operational|Completed)`", row.cells[1])
    ]
    cls: Any = KINDS[kind]
    waits = cls.default_suspension_status({"status": {"replicas": 1, "active": 1}}).status != "Suspended"

    assert example_ready
    assert waits == any(row.kind == kind for row in SUSPENDED)


@pytest.mark.parametrize("kind", SECTIONS)
def test_the_methods_of_a_kinds_mutator_are_those_of_its_table(kind: str) -> None:
    documented = names_in(facts(SECTIONS[kind])["mutations"])
    shared, own = (
        documented & SHARED.keys(),
        {name for name in documented if name not in SHARED and name not in EDITOR_CLASSES},
    )
    inherited = set().union(*(methods_of(SHARED[name]) for name in {"Mutator", *shared}))

    mutator = instance_of(kind).create_mutator()

    assert own | inherited == methods_of(type(mutator))
    assert documented & EDITOR_CLASSES.keys() == {name for name in documented if name.endswith("Editor")}


def instance_of(kind: str) -> Primitive[Any]:
    cls: Any = KINDS[kind]
    judged = {"converging_status": lambda live, operation: None}
    arguments: dict[str, dict[str, Any]] = {
        **dict.fromkeys(("Workload", "Task", "Integration"), judged),
        "GeneratedSecret": {"values": {"password": konverge.primitives.Generated.password()}},
        "GeneratedCertificate": {"dns_names": ["a"]},
    }
    return cls({"metadata": {"name": "a", "namespace": "b"}}, **arguments.get(kind, {}))  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", SHARED)
def test_a_mutator_that_kinds_share_has_the_methods_of_its_row(name: str) -> None:
    table = {
        re.findall(r"\w+", cells[0])[0]: names_in(cells[1]) for cells in rows(read_page(EDITORS), "mutator", "methods")
    }

    documented = {method for method in table[name] if method not in SHARED and method not in EDITOR_CLASSES}

    above = set().union(*(methods_of(base) for base in SHARED[name].__mro__[1:-1]))
    assert documented == methods_of(SHARED[name]) - above - {"apply_to"}
    assert table.keys() == SHARED.keys()


def test_the_editors_have_the_methods_of_their_table() -> None:
    table = rows(read_page(EDITORS), "editor", "methods", "keys")

    documented = {cells[0].strip("`"): names_in(cells[1]) for cells in table}

    assert documented == {name: methods_of(cls) - {"raw"} for name, cls in EDITOR_CLASSES.items()}


def test_the_selectors_are_those_of_their_table() -> None:
    table = rows(read_page(EDITORS), "selector", "the containers")

    documented = {name for cells in table for name in re.findall(r"`(\w+)\(", cells[0])}

    assert documented == {name for name in konverge.mutation.__all__ if "container" in name}


@pytest.mark.slow
def test_the_python_of_the_overview_is_a_file_that_runs(tmp_path: Path) -> None:
    file = save_page_code(OVERVIEW, tmp_path)

    ended = subprocess.run([sys.executable, "-W", "error", str(file)], check=False, capture_output=True, text=True)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
