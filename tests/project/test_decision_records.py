"""The decision records: complete, short, numbered, and all in the index."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
INDEX = (FOLDER / "README.md").read_text()
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))


def test_the_index_has_every_record_with_its_title() -> None:
    rows = re.findall(r"^\| \[(\d{4})\]\(([\w.-]+)\) \| (.*) \|$", INDEX, re.MULTILINE)

    assert [(f"{number}", file) for number, file, _ in rows] == [(path.name[:4], path.name) for path in RECORDS]
    assert [title for *_, title in rows] == [path.read_text().splitlines()[0].partition(": ")[2] for path in RECORDS]


def test_the_numbers_have_no_gap() -> None:
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_the_sections_and_the_size_that_the_index_promises(path: Path) -> None:
    text = path.read_text()

    assert text.startswith(f"# {path.name[:4]}: ")
    assert re.search(r"^Status: (accepted|replaced by \[.*\]\(.*\))$", text, re.MULTILINE)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences", "Rejected"]
    assert 25 <= len(text.splitlines()) <= 45
