"""Mistakes in the README's operator that both type checkers report before it runs."""

from __future__ import annotations

import re
import subprocess
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file for each mistake, and the operator without one."""
    (text,) = find_code_blocks("README.md", "python")
    (tmp_path / "right.py").write_text(text)
    for name, (right, wrong) in MISTAKES.items():
        assert text.count(right) == 1, right
        (tmp_path / f"{name}.py").write_text(text.replace(right, wrong))
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_every_planted_mistake_is_reported(checker: str, folder: Path, type_checkers: dict[str, list[str]]) -> None:
    files = sorted(path.name for path in folder.glob("*.py"))
    done = subprocess.run(
        [*type_checkers[checker], *files], check=False, cwd=folder, capture_output=True, text=True, timeout=110
    )

    reported = set(re.findall(r"(\w+)\.py:\d+(?::\d+)?:? (?:- )?error", done.stdout))
    assert reported == set(MISTAKES), done.stdout
