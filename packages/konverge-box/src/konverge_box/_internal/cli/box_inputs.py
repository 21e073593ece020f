"""Inputs of a box on the command line in place of a cluster: objects, and responses to external calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import inspect

from konverge._internal.cli.yaml_documents import read_objects
from konverge._internal.kube import Object
from konverge.errors import ConfigurationError
from konverge_box._internal.calls.scripted_answers import ScriptedAnswer
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.file import BoxFileError
from konverge_box._internal.file.struct_reader import StructReader
from konverge_box._internal.file.yaml_source import parse_source

__all__ = ["input_options", "read_answers", "read_input_objects"]

F = TypeVar("F", bound=Callable[..., Any])

_ANSWERS = inspect.type_info(dict[str, ScriptedAnswer])


def input_options(*, given: str, answers: str) -> Callable[[F], F]:
    """Add the options ``given_files`` and ``answers_file`` to a command.

    Args:
        given: The help text of ``--given``.
        answers: The help text of ``--answers``.
    """
    file = click.Path(path_type=Path)
    options = (
        click.option("--given", "given_files", metavar="OBJECTS.yaml", multiple=True, type=file, help=given),
        click.option("--answers", "answers_file", metavar="ANSWERS.yaml", type=file, help=answers),
    )

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def read_input_objects(files: Iterable[Path]) -> list[Object]:
    """Return the objects of all files.

    Raises:
        konverge.errors.ConfigurationError: A file does not contain objects.
    """
    return [obj for file in files for obj in read_objects(file)]


def read_answers(file: Path | None) -> dict[str, ScriptedAnswer]:
    """Return the responses to calls by name; none without a file.

    Raises:
        konverge.errors.ConfigurationError: The file cannot be read, or has more than one document.
        BoxFileError: A response is invalid; the error holds every error of the file.
    """
    if file is None:
        return {}
    documents = parse_source(read_box(file), str(file))
    if len(documents) > 1:
        raise ConfigurationError(f"{file}: expected one document, found {len(documents)}")
    if not documents:
        return {}
    (source,) = documents
    answers: dict[str, ScriptedAnswer] = {}
    if source.value is not None:
        answers = StructReader(source, {}).read_value(_ANSWERS, source.value, ())
    if source.errors:
        raise BoxFileError(source.errors)
    return answers
