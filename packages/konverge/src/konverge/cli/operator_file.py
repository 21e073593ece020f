"""Operator files: the Python or box file that a user hands to ``konverge``, and the operator in it."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from konverge.errors import ConfigurationError
from konverge.extras import missing_extra
from konverge.operator import Operator

__all__ = ["OPERATOR_FILES", "OperatorReference", "find_operator", "load_operator", "parse_operator_reference"]

OPERATOR_FILES = "konverge.operator_files"
"""The group of entry points for files that are no Python; the name of one is their suffix without its dot, and what it
loads is called with the file and answers the operator."""

_BOX_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class OperatorReference:
    """Where an operator is: a file, and the variable of it; an empty name means the only one that there is."""

    file: Path
    name: str = ""

    @property
    def is_box(self) -> bool:
        """Tell whether it is a box file."""
        return self.file.suffix in _BOX_SUFFIXES


def parse_operator_reference(text: str) -> OperatorReference:
    """Read ``FILE.py``, ``FILE.py:variable`` or ``FILE.yaml``."""
    file, colon, name = text.rpartition(":")
    if colon and name.isidentifier():
        return OperatorReference(Path(file), name)
    return OperatorReference(Path(text))


def load_operator(reference: OperatorReference) -> Operator:
    """Run the file, as a module of its own, and take the operator out of it; a box file is an operator itself.

    A Python file may import its neighbours: its folder is appended to the import path, behind everything else, so that
    a file called ``operator.py`` does not hide a module of the standard library.

    Raises:
        konverge.errors.ConfigurationError: There is no such file, it does not import (the message has file, line and
            error), or it has no operator of that name, none at all, or several.
    """
    if reference.is_box:
        return _load_box(reference)
    module = _import_file(reference.file)
    return find_operator(vars(module), reference)


def find_operator(variables: Mapping[str, object], reference: OperatorReference) -> Operator:
    """The operator among a module's variables.

    Raises:
        konverge.errors.ConfigurationError: There is none of that name, none at all, or there are several.
    """
    file = reference.file
    found = {name: value for name, value in variables.items() if isinstance(value, Operator)}
    if reference.name:
        if reference.name in found:
            return found[reference.name]
        known = f"it has: {', '.join(found)}" if found else "it has no operator at all"
        problem = "is no konverge.Operator" if reference.name in variables else "does not exist"
        raise ConfigurationError(f"{file}: the variable {reference.name!r} {problem} ({known})")
    distinct = {id(value): name for name, value in reversed(found.items())}
    if not distinct:
        raise ConfigurationError(f"{file}: has no operator: expected a line such as operator = Operator('webapp')")
    if len(distinct) > 1:
        names = list(reversed(distinct.values()))
        raise ConfigurationError(
            f"{file}: has several operators ({', '.join(names)}): choose one, for example {file}:{names[0]}"
        )
    return next(iter(found.values()))


def _load_box(reference: OperatorReference) -> Operator:
    if reference.name:
        raise ConfigurationError(f"{reference.file}: a box file is one operator: leave out :{reference.name}")
    for found in entry_points(group=OPERATOR_FILES, name=reference.file.suffix.removeprefix(".")):
        operator = found.load()(reference.file)
        assert isinstance(operator, Operator)
        return operator
    raise missing_extra(f"{reference.file}: what runs a box file", "box")


def _import_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise ConfigurationError(f"{file}: {'a folder, expected a Python file' if file.is_dir() else 'no such file'}")
    # Classes look up their module by name to resolve their type hints, so it must be registered, under a name that
    # nothing else has.
    name = f"konverge_operator_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file}: expected a Python file, with a name that ends in .py")
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit, GeneratorExit) as error:
        # Also what is no `Exception`: a file that calls sys.exit(0) must not look like an operator that ran.
        del sys.modules[name]
        raise ConfigurationError(_format_import_error(file, error)) from error
    return module


def _format_import_error(file: Path, error: BaseException) -> str:
    """One line: the last line of the user's own file that was being executed, and what went wrong there."""
    message = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    line: int | None = None
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).resolve() == file.resolve():
        line, message = error.lineno, error.msg
    else:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file.resolve()]
        line = own[-1].lineno if own else None
    place = f"{file}, line {line}" if line is not None else str(file)
    return f"{place}: {type(error).__name__}: {message}"
