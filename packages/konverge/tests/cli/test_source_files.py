"""The files that belong to the author of an operator, and the moment when they count as changed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

import konverge
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.source_files import (
    FileSignature,
    SourceWatch,
    list_folder_files,
    list_module_files,
    list_traceback_files,
    read_signatures,
)
from konverge.errors import ConfigurationError

SECOND = 1_000_000_000


def signature(time: float, size: int = 1) -> FileSignature:
    return 1, 1, int(time * SECOND), size


def watch_file(modified: float = 1, imported_at: float = 10) -> SourceWatch:
    watch = SourceWatch()
    watch.add_files({"a.py": signature(modified)}, imported_at_ns=int(imported_at * SECOND))
    return watch


def test_a_change_counts_once_and_only_when_it_is_complete() -> None:
    watch = watch_file()
    states = [signature(1), signature(20, 0), signature(20, 5), signature(20, 5), signature(20, 5)]

    assert [watch.observe({"a.py": state}) for state in states] == [[], [], [], ["a.py"], []]


def test_a_change_that_is_undone_at_once_is_none() -> None:
    watch = watch_file()

    assert [watch.observe({"a.py": state}) for state in (signature(20), signature(1), signature(1))] == [[], [], []]


def test_a_file_that_disappears_and_comes_back_has_changed_twice() -> None:
    watch = watch_file()
    states = [None, None, signature(30), signature(30)]

    assert [watch.observe({"a.py": state}) for state in states] == [[], ["a.py"], [], ["a.py"]]


def test_a_file_that_is_newer_than_its_import_has_changed_once() -> None:
    watch = watch_file(modified=10.5, imported_at=10)

    assert [watch.observe({"a.py": signature(10.5)}) for _ in range(3)] == [[], ["a.py"], []]


def test_a_file_from_the_future_is_loaded_once_more_and_not_for_ever() -> None:
    watch = watch_file(modified=99, imported_at=10)
    assert [watch.observe({"a.py": signature(99)}) for _ in range(2)] == [[], ["a.py"]]

    watch.add_files({"a.py": signature(99)}, imported_at_ns=11 * SECOND)

    assert [watch.observe({"a.py": signature(99)}) for _ in range(2)] == [[], []]


def test_an_absent_file_has_no_signature(tmp_path: Path) -> None:
    assert read_signatures([str(tmp_path / "absent.py"), "null\0byte"]) == {
        str(tmp_path / "absent.py"): None,
        "null\0byte": None,
    }


def test_only_the_authors_modules_count(tmp_path: Path) -> None:
    own = ModuleType("own")
    own.__file__ = str(tmp_path / "own.py")
    (tmp_path / "own.py").touch()

    assert list_module_files([json, yaml, pytest, konverge, sys, ModuleType("empty"), None, own]) == [own.__file__]


def test_the_files_of_an_error_are_those_that_it_ran_through(tmp_path: Path) -> None:
    (tmp_path / "konverge_test_broken.py").write_text("x = (\n")
    (tmp_path / "main.py").write_text("import json\nimport konverge_test_broken\n")
    with pytest.raises(ConfigurationError) as caught:
        load_operator(parse_operator_reference(str(tmp_path / "main.py")))

    files = list_traceback_files(caught.value)

    assert {Path(file).name for file in files if Path(file).parent == tmp_path} == {
        "konverge_test_broken.py",
        "main.py",
    }


def test_files_nearby_are_those_that_may_be_imported(tmp_path: Path) -> None:
    for name in (
        "main.py",
        "package/inner.py",
        ".hidden/a.py",
        "env/pyvenv.cfg",
        "env/b.py",
        "__pycache__/c.py",
        "d.txt",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert list_folder_files(tmp_path) == [str(tmp_path / "main.py"), str(tmp_path / "package" / "inner.py")]
