"""The page about new projects has every file and every command of a new project."""

from __future__ import annotations

import re

import pytest

from konverge._internal.cli.project_files import ProjectKind, parse_names, render_project
from tests.docs.pages import find_commands, read_page

PAGE = "docs/new-project.md"
FILES = render_project(parse_names("shop", None, "example.com"), "python")


def test_the_page_has_every_file() -> None:
    page = read_page(PAGE)
    known = {".gitignore", "README.md", "tests/conftest.py"}

    assert [
        path
        for path in FILES
        if path not in known and f"`{path}`" not in page and f"`{path.partition('/')[0]}/" not in page
    ] == []


def test_the_page_has_every_target() -> None:
    targets = re.findall(r"^([a-z-]+):.*##", FILES["Makefile"], re.MULTILINE)

    assert {f"make {target}" for target in targets} == set(
        re.findall(r"^\| `(make [a-z-]+)` \|", read_page(PAGE), re.M)
    )


@pytest.mark.parametrize("kind", ["python", "box"])
def test_the_commands_of_page_and_readme_are_targets(kind: ProjectKind) -> None:
    files = render_project(parse_names("shop", None, "example.com"), kind)
    readme = re.findall(r"\$ make ([a-z-]+)", files["README.md"])
    page = [command[1] for command in find_commands(PAGE) if command[0] == "make"]

    assert {f"{target}:" for target in readme} <= set(re.findall(r"^[a-z-]+:", files["Makefile"], re.MULTILINE))
    assert {f"{target}:" for target in page} <= set(re.findall(r"^[a-z-]+:", FILES["Makefile"], re.MULTILINE))
