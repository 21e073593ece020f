"""``konverge init``: a new project for an operator in Python, or for a box."""

from __future__ import annotations

from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import click

from konverge._internal.cli.operator_file import OPERATOR_FILES
from konverge._internal.cli.project_files import ProjectKind, parse_names, render_project
from konverge._internal.extras import missing_extra
from konverge.errors import ConfigurationError

__all__ = ["init", "write_project"]


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--box", "is_box", is_flag=True, help="Create a box: an operator as one YAML file.")
@click.option("--kind", help="Kind of the custom resource (default: derived from NAME).")
@click.option("--group", default="example.com", show_default=True, help="API group of the custom resource.")
@click.option("--folder", type=click.Path(path_type=Path), help="Directory of the project (default: NAME).")
def init(name: str, is_box: bool, kind: str | None, group: str, folder: Path | None) -> None:
    """Create a project for the operator NAME: code, tests, Makefile, image and CI workflow.

    The directory must be empty or absent. The files are yours: konverge never reads or changes them again.
    """
    names = parse_names(name, kind, group)
    project: ProjectKind = "box" if is_box else "python"
    if is_box and not entry_points(group=OPERATOR_FILES, name="yaml"):
        raise missing_extra("konverge init --box", "box")
    target = Path(name) if folder is None else folder
    files = render_project(names, project)
    write_project(target, files)
    for path in files:
        click.echo(str(target / path))
    click.echo(f"\nNext: cd {target} && make test", err=True)


def write_project(folder: Path, files: dict[str, str]) -> None:
    """Write files into a directory that is empty or absent; after an error, nothing of them is left.

    Args:
        folder: The directory.
        files: The text of each file by its path.

    Raises:
        konverge.errors.ConfigurationError: The directory is not empty, or a file cannot be written.
    """
    created: list[Path] = []
    try:
        _make_folders(folder, created)
        if next(folder.iterdir(), None) is not None:
            raise ConfigurationError(f"{folder}: expected an empty directory or none, found files; use --folder")
        for path, text in files.items():
            file = folder / path
            _make_folders(file.parent, created)
            with file.open("x", encoding="utf-8", newline="\n") as opened:
                created.append(file)
                opened.write(text)
    except BaseException as error:
        _remove(created)
        if isinstance(error, OSError):
            raise ConfigurationError(f"{error.filename or folder}: {error.strerror}") from error
        raise


def _make_folders(folder: Path, created: list[Path]) -> None:
    """Create a directory and its parents, and record those that did not exist."""
    for place in reversed([folder, *folder.parents]):
        try:
            place.mkdir()
        except FileExistsError:
            if not place.is_dir():
                raise
        else:
            created.append(place)


def _remove(created: list[Path]) -> None:
    for path in reversed(created):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink()
