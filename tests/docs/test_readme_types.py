"""Mistakes in the README's operator that both type checkers report before it runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.pages import find_code_blocks

# A mistake by the text that it replaces; the error is on a line of the replaced text.
MISTAKES = {
    "misspelled_field": ('"replicas": site', '"replicsa": site'),
    "misspelled_field_of_a_pod": ('"containers": [', '"container": ['),
    "misspelled_selector": ('{"matchLabels": labels}', '{"matchLabel": labels}'),
    "misspelled_metadata": ('{"labels": labels}', '{"label": labels}'),
    "wrong_type": ('"image": site.spec.image', '"image": site.spec.replicas'),
    "wrong_type_of_a_list": (
        '"containers": [{"name": "web", "image": site.spec.image}]',
        '"containers": {"name": "web"}',
    ),
    "missing_name": ('{"name": "web", "image"', '{"image"'),
    "missing_selector": (' "selector": {"matchLabels": labels},', ""),
    "unknown_attribute": ("site.spec.image}", "site.spec.imgae}"),
    "unknown_metadata": ("site.metadata.namespace}", "site.metadata.name_space}"),
    "wrong_argument": (".suspend(site.spec.suspended)", ".suspend(site.spec.image)"),
    "missing_build": ("        .build()\n", ""),
}


def plant(text: str, mistakes: Mapping[str, tuple[str, str]], folder: Path) -> None:
    """Write a file for each mistake, and the operator without one."""
    (folder / "right.py").write_text(text)
    for name, (right, wrong) in mistakes.items():
        assert text.count(right) == 1, right
        (folder / f"{name}.py").write_text(text.replace(right, wrong))


def list_reported(checker: list[str], folder: Path) -> set[str]:
    """Return the files with an error."""
    files = sorted(path.name for path in folder.glob("*.py"))
    done = subprocess.run([*checker, *files], check=False, cwd=folder, capture_output=True, text=True, timeout=110)
    return set(re.findall(r"(\w+)\.py:\d+(?::\d+)?:? (?:- )?error", done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_every_planted_mistake_is_reported(checker: str, tmp_path: Path, type_checkers: dict[str, list[str]]) -> None:
    (text,) = find_code_blocks("README.md", "python")
    plant(text, MISTAKES, tmp_path)

    assert list_reported(type_checkers[checker], tmp_path) == set(MISTAKES)
