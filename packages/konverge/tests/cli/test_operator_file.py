"""Finding the operator in the file that a user names."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge.errors import ConfigurationError


def write(folder: Path, text: str, name: str = "operator.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def problem_with(reference: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_operator(parse_operator_reference(reference))
    return str(caught.value)


def test_the_only_operator_is_found_whatever_its_name(tmp_path: Path) -> None:
    file = write(tmp_path, "from konverge import Operator\nshop = Operator('shop')\n")

    assert load_operator(parse_operator_reference(str(file))).name == "shop"


def test_one_operator_under_two_names_is_one(tmp_path: Path) -> None:
    file = write(tmp_path, "from konverge import Operator\nshop = Operator('shop')\nalias = shop\n")

    assert load_operator(parse_operator_reference(str(file))).name == "shop"


def test_one_of_several_is_chosen_by_its_variable(tmp_path: Path) -> None:
    file = write(tmp_path, "from konverge import Operator\na = Operator('first')\nb = Operator('second')\n")

    assert load_operator(parse_operator_reference(f"{file}:b")).name == "second"


def test_the_file_may_import_its_neighbours(tmp_path: Path) -> None:
    write(tmp_path, "NAME = 'shop'\n", name="konverge_test_neighbour.py")
    file = write(
        tmp_path, "from konverge import Operator\nfrom konverge_test_neighbour import NAME\no = Operator(NAME)\n"
    )

    assert load_operator(parse_operator_reference(str(file))).name == "shop"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert problem_with(f"{tmp_path}/nothing.py") == f"{tmp_path}/nothing.py: no such file"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert problem_with(str(tmp_path)) == f"{tmp_path}: expected a Python file, found a directory"


def test_an_error_while_importing_names_file_line_and_error(tmp_path: Path) -> None:
    file = write(tmp_path, "import konverge\n\nimport no_such_module_at_all\n")

    assert problem_with(str(file)) == f"{file}, line 3: ModuleNotFoundError: No module named 'no_such_module_at_all'"


def test_an_error_in_a_library_names_the_line_of_the_users_file(tmp_path: Path) -> None:
    file = write(tmp_path, "import json\n\n\njson.loads('{')\n")

    assert problem_with(str(file)).startswith(f"{file}, line 4: JSONDecodeError: ")


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "x = 1\nif x\n    pass\n")

    assert problem_with(str(file)) == f"{file}, line 2: SyntaxError: expected ':'"


def test_an_error_of_several_lines_becomes_one(tmp_path: Path) -> None:
    text = "from konverge import custom_resource\n@custom_resource(group='x', version='Y')\nclass Thing: ...\n"
    file = write(tmp_path, text)

    assert "\n" not in problem_with(str(file))


@pytest.mark.parametrize("leaving", ["import sys; sys.exit(0)", "import sys; sys.exit('bye')", "raise GeneratorExit"])
def test_a_file_that_leaves_while_it_is_imported_has_no_operator(tmp_path: Path, leaving: str) -> None:
    file = write(tmp_path, leaving)

    assert f"{file}, line 1: " in problem_with(str(file))


def test_no_operator_in_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "x = 1\n")

    assert problem_with(str(file)).startswith(f"{file}: expected an operator, found none")


def test_several_operators_and_none_chosen(tmp_path: Path) -> None:
    file = write(tmp_path, "from konverge import Operator\na = Operator('first')\nb = Operator('second')\n")

    assert (
        problem_with(str(file))
        == f"{file}: expected one operator, found several (a, b); choose one, for example {file}:a"
    )


def test_a_chosen_variable_that_does_not_exist(tmp_path: Path) -> None:
    file = write(tmp_path, "from konverge import Operator\na = Operator('first')\n")

    expected = f"{file}: variable 'b': expected a konverge.Operator, found no such variable (the file has: a)"
    assert problem_with(f"{file}:b") == expected


def test_a_chosen_variable_that_is_something_else(tmp_path: Path) -> None:
    file = write(tmp_path, "b = 1\n")

    expected = f"{file}: variable 'b': expected a konverge.Operator, found another value (the file has no operator)"
    assert problem_with(f"{file}:b") == expected
