"""Operator files: Python or box files on the command line, and the operator in them."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from konverge._internal.extras import missing_extra
from konverge._internal.operator import Operator
from konverge.errors import ConfigurationError

__all__ = [
    "OPERATOR_FILES",
    "OperatorReference",
    "check_file",
    "find_operator",
    "load_operator",
    "parse_operator_reference",
]

OPERATOR_FILES = "konverge.operator_files"
"""The group of entry points for files other than Python. The name of an entry point is the suffix without its dot; it
loads a function that gets the file and returns the operator."""

_BOX_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class OperatorReference:
    """Location of an operator: a file and a variable in it; an empty name means the only operator of the file."""

    file: Path
    name: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.name}" if self.name else str(self.file)

    @property
    def is_box(self) -> bool:
        """True if the file is a box file."""
        return self.file.suffix in _BOX_SUFFIXES


def parse_operator_reference(text: str) -> OperatorReference:
    """Parse ``FILE.py``, ``FILE.py:variable`` or ``FILE.yaml``."""
    file, colon, name = text.rpartition(":")
    if colon and name.isidentifier():
        return OperatorReference(Path(file), name)
    return OperatorReference(Path(text))


def load_operator(reference: OperatorReference) -> Operator:
    """Import the file as a separate module and return its operator; a box file is an operator itself.

    A Python file can import modules of its directory, which is appended to the import path. It comes last, so that a
    file named ``operator.py`` does not hide a module of the standard library.

    Raises:
        konverge.errors.ConfigurationError: The file does not exist, its import fails (the message has file, line and
            error), or it has no operator of this name, no operator, or several operators.
    """
    if reference.is_box:
        return _load_box(reference)
    module = _import_file(reference.file)
    return find_operator(vars(module), reference)


def find_operator(variables: Mapping[str, object], reference: OperatorReference) -> Operator:
    """Return the operator among a module's variables.

    Raises:
        konverge.errors.ConfigurationError: There is no operator of this name, no operator, or several operators.
    """
    file = reference.file
    operators = {name: value for name, value in variables.items() if isinstance(value, Operator)}
    if reference.name:
        if reference.name in operators:
            return operators[reference.name]
        available = f"the file has: {', '.join(operators)}" if operators else "the file has no operator"
        problem = "found another value" if reference.name in variables else "found no such variable"
        raise ConfigurationError(
            f"{file}: variable {reference.name!r}: expected a konverge.Operator, {problem} ({available})"
        )
    distinct = {id(value): name for name, value in reversed(operators.items())}
    if not distinct:
        raise ConfigurationError(
            f"{file}: expected an operator, found none; add a line such as operator = Operator('webapp')"
        )
    if len(distinct) > 1:
        names = list(reversed(distinct.values()))
        raise ConfigurationError(
            f"{file}: expected one operator, found several ({', '.join(names)}); choose one, for example "
            f"{file}:{names[0]}"
        )
    return next(iter(operators.values()))


def _load_box(reference: OperatorReference) -> Operator:
    if reference.name:
        raise ConfigurationError(
            f"{reference.file}: expected no variable for a box file, found :{reference.name}; omit it"
        )
    for entry_point in entry_points(group=OPERATOR_FILES, name=reference.file.suffix.removeprefix(".")):
        operator = entry_point.load()(reference.file)
        assert isinstance(operator, Operator)
        return operator
    raise missing_extra(f"{reference.file}: the runtime of box files", "box")


def check_file(file: Path) -> None:
    """Raise an error if there is no file.

    Raises:
        konverge.errors.ConfigurationError: The file does not exist, or is a directory.
    """
    if not file.is_file():
        raise ConfigurationError(
            f"{file}: {'expected a Python file, found a directory' if file.is_dir() else 'no such file'}"
        )


def _import_file(file: Path) -> ModuleType:
    check_file(file)
    # Classes look up their module by name to resolve their type hints, so it must be registered under a unique name.
    name = f"konverge_operator_file_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file}: expected a Python file, whose name ends in .py")
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit, GeneratorExit) as error:
        # Not only `Exception`: a file that calls sys.exit(0) must not look like an operator that ran.
        del sys.modules[name]
        raise ConfigurationError(_format_import_error(file, error)) from error
    return module


def _format_import_error(file: Path, error: BaseException) -> str:
    """Return one line with the last executed line of the user's file and the error."""
    message = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    line: int | None = None
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).resolve() == file.resolve():
        line, message = error.lineno, error.msg
    else:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == file.resolve()]
        line = own[-1].lineno if own else None
    position = f"{file}, line {line}" if line is not None else str(file)
    return f"{position}: {type(error).__name__}: {message}"
