"""The names that ``from konverge import ...`` offers."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import konverge
from konverge import guards, options, prerequisites

STUB = ast.parse(Path(konverge.__file__).with_suffix(".pyi").read_text())


def list_stub_names() -> dict[str, str]:
    """List the names that the stub file exports, with their packages."""
    imports = [node for node in STUB.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in imports for alias in node.names if alias.asname == alias.name}


@pytest.mark.parametrize("name", konverge.__all__)
def test_each_public_name_is_the_one_of_its_package(name: str) -> None:
    package = importlib.import_module(list_stub_names()[name])

    assert getattr(konverge, name) is getattr(package, name)
    assert name in package.__all__


def test_type_checkers_see_the_same_names() -> None:
    assert set(list_stub_names()) == set(konverge.__all__)


def test_functions_that_mean_nothing_alone_are_in_a_module_with_a_name() -> None:
    qualified = {*options.__all__, *guards.__all__, *prerequisites.__all__, "aggregate", "immutable", "class_rules"}

    assert not qualified & set(konverge.__all__)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Operatr'"):
        konverge.Operatr  # type: ignore[attr-defined]  # noqa: B018


def test_dir_lists_what_is_not_loaded_yet() -> None:
    script = "import konverge; print(set(konverge.__all__) <= set(dir(konverge)))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "True\n"
