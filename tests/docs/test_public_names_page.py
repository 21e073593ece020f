"""The page of public names lists what the packages promise, and nothing else is importable without `_internal`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from tools.public_names import PAGE, build_page, list_public_modules

SOURCES = sorted(Path(__file__).parents[2].glob("packages/*/src/*"))


def test_the_page_is_the_one_that_the_tool_writes() -> None:
    assert PAGE.read_text() == build_page(), "run: python -m tools.public_names"


@pytest.mark.parametrize("name", list_public_modules())
def test_each_promised_module_lists_its_names(name: str) -> None:
    module = import_module(name)
    names = getattr(module, "__all__", [])

    assert sorted(names) == sorted(set(names))
    assert [each for each in names if not hasattr(module, each)] == []


@pytest.mark.parametrize("source", [path for path in SOURCES if path.is_dir()], ids=lambda path: path.name)
def test_a_package_has_only_promised_modules_beside_its_private_ones(source: Path) -> None:
    promised = {name.rpartition(".")[2] for name in list_public_modules() if name.startswith(f"{source.name}.")}
    found = {path.stem for path in source.iterdir() if path.suffix == ".py" or path.is_dir()}

    assert found - {"__init__", "__main__", "__pycache__"} - promised <= {"_internal", "types"}
