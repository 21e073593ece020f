"""The names that ``from konverge import ...`` offers."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import konverge

SOURCE = ast.parse(Path(konverge.__file__).read_text())


def names_for_type_checkers() -> dict[str, str]:
    """What the block under TYPE_CHECKING imports: name and package."""
    (block,) = (node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names}


@pytest.mark.parametrize("name", konverge.__all__)
def test_each_public_name_is_the_one_of_its_package(name: str) -> None:
    package = importlib.import_module(names_for_type_checkers()[name])

    assert getattr(konverge, name) is getattr(package, name)
    assert name in package.__all__


def test_type_checkers_see_the_same_names() -> None:
    assert set(names_for_type_checkers()) == set(konverge.__all__)


@pytest.mark.parametrize(
    "pair",
    [("blocked", "UNBLOCKED"), ("depends_on", "not_met"), ("depends_on", "MET")],
    ids=" and ".join,
)
def test_both_answers_of_a_function_come_from_one_place(pair: tuple[str, str]) -> None:
    assert set(pair) <= set(konverge.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Operatr'"):
        konverge.Operatr  # type: ignore[attr-defined]  # noqa: B018


def test_dir_lists_what_is_not_loaded_yet() -> None:
    script = "import konverge; print(set(konverge.__all__) <= set(dir(konverge)))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"
