"""What surrounds a box on the command line in place of a cluster: objects that are there, answers of external calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from konverge.cli.yaml_documents import read_objects
from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge_box.calls.scripted_answers import ScriptedAnswer

__all__ = ["input_options", "read_answers", "read_input_objects"]

F = TypeVar("F", bound=Callable[..., Any])


def input_options(*, given: str, answers: str) -> Callable[[F], F]:
    """Give a command ``given_files`` and ``answers_file``.

    Args:
        given: What the help says of the former.
        answers: What it says of the latter.
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
    """The objects of all files.

    Raises:
        konverge.errors.ConfigurationError: One is no file of objects.
    """
    return [obj for file in files for obj in read_objects(file)]


def read_answers(file: Path | None) -> dict[str, ScriptedAnswer]:
    """What calls are answered, by name; nothing without a file.

    Raises:
        konverge.errors.ConfigurationError: It is something else.
    """
    if file is None:
        return {}
    found = read_objects(file)
    if len(found) > 1:
        raise ConfigurationError(f"{file}: expected one document, found {len(found)}")
    try:
        return msgspec.convert(found[0] if found else {}, dict[str, ScriptedAnswer])
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{file}: {error}") from None
