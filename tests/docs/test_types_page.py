"""The examples on the page about types match the output of two type checkers and the command."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import konverge.types
from tests.docs.pages import find_code_blocks, find_commands, read_page

PAGE = "docs/types.md"


def run_command(command: list[str], folder: Path, exit_code: int = 0) -> str:
    """Return the output of a command with that exit code."""
    ended = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=100)
    assert ended.returncode == exit_code, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write the files of the page and the output of its command."""
    for name, text in zip(("sites.py", "boxed.py"), find_code_blocks(PAGE, "python"), strict=True):
        (tmp_path / name).write_text(text)
    (tmp_path / "boxes-crd.yaml").write_text(find_code_blocks(PAGE, "yaml")[0])
    (command,) = find_commands(PAGE)
    run_command([sys.executable, "-m", *command], tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_python_of_the_page_runs_and_has_the_types_that_it_says(
    folder: Path, type_checkers: dict[str, list[str]]
) -> None:
    for file in ("sites.py", "boxed.py"):
        assert run_command([sys.executable, file], folder) == ""
    for command in type_checkers.values():
        run_command([*command, "sites.py", "boxed.py"], folder)


@pytest.mark.slow
def test_mypy_says_what_the_page_shows(folder: Path, type_checkers: dict[str, list[str]]) -> None:
    sites = folder / "sites.py"
    sites.write_text(sites.read_text().replace('"replicas": 2', '"replica": 2'))

    assert find_code_blocks(PAGE, "text")[0] in run_command([*type_checkers["mypy"], "sites.py"], folder, exit_code=1)


def test_the_classes_of_the_page_are_those_that_the_command_writes(folder: Path) -> None:
    text = (folder / "boxes.py").read_text()

    assert all(f"class {name}(" in text for name in ("Box", "BoxSpec", "BoxSpecContentItem"))


def test_the_page_has_every_module() -> None:
    names = [path.stem for path in Path(konverge.types.__file__).parent.glob("*_v*.py")]

    assert [name for name in names if f"`{name}`" not in read_page(PAGE)] == []
    assert import_module("konverge.types.meta_v1").Quantity == str | int | float
