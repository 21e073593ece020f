"""``konverge box import``: conversion of a Katalog to a box, with a report of the parts without a counterpart."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Literal

import click
import msgspec

from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import is_verbose, verbose_option
from konverge._internal.cli.plurals import format_count
from konverge._internal.cli.yaml_documents import STDIN
from konverge.errors import ConfigurationError
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.cli.box_inputs import input_options, read_answers, read_input_objects
from konverge_box._internal.cli.import_check import check_imported_box
from konverge_box._internal.file.yaml_source import MAX_BYTES
from konverge_box._internal.katalog import KatalogImport, import_katalog

__all__ = ["box_import"]


@click.command("import")
@click.argument("file", metavar="katalog.yaml", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the box (default: stdout).")
@click.option(
    "--report",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of the report on stderr.",
)
@click.option(
    "--object",
    "object_files",
    metavar="CR.yaml",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Custom resources for the simulated pass (default: samples). Can be repeated.",
)
@input_options(
    given="File with other objects in the cluster of the simulated pass. Can be repeated.",
    answers="Responses to external calls in the simulated pass (default: empty ones).",
)
@verbose_option
@click.pass_context
def box_import(
    ctx: click.Context,
    file: Path,
    output: Path | None,
    report: Literal["text", "json"],
    object_files: tuple[Path, ...],
    given_files: tuple[Path, ...],
    answers_file: Path | None,
) -> None:
    """Convert a Katalog to a box, validate the box, and run it in a simulation. Use - for stdin.

    On stderr, the command reports parts that it cannot convert, each with its position, the reason and an alternative,
    and why the box is invalid or fails in the simulation. Comments in the box describe parts that behave differently.
    Exit code 0: everything was converted and the box works, 1: the report has entries, 3: the file is not a Katalog.
    """
    if not is_verbose(ctx):
        logging.getLogger("konverge").setLevel(logging.CRITICAL)  # the report contains the errors of the simulation
    inputs = read_input_objects(object_files), read_input_objects(given_files), read_answers(answers_file)
    found = import_katalog(read_box(file), file=str(file), read=_build_reader(file))
    if found.text and not any(each.line == 0 for each in found.listed):
        objects, given, answers = inputs
        problems = check_imported_box(found.text, file=str(file), objects=objects, given=given, answers=answers)
        found = msgspec.structs.replace(found, listed=(*found.listed, *problems))
    if found.text:
        _write(found.text, output)
    if report == "json":
        listed = msgspec.to_builtins({"listed": found.listed, "decisions": found.decisions})
        click.echo(json.dumps(listed, indent=2), err=True)
    else:
        _print_findings(found)
    if found.listed:
        ctx.exit(ExitCode.FAILED)


def _build_reader(file: Path) -> Callable[[str], bytes | None]:
    """Return a function that reads files in the directory of the Katalog or below it, and no others."""
    folder = Path() if file == STDIN else file.parent

    def read(name: str) -> bytes | None:
        relative = PurePosixPath(name)
        if relative.is_absolute() or ".." in relative.parts or "://" in name:
            return None
        try:
            with (folder / relative).open("rb") as opened:
                return opened.read(MAX_BYTES + 1)
        except (OSError, ValueError):
            return None

    return read


def _write(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{output}: {error.strerror}") from error


def _print_findings(found: KatalogImport) -> None:
    for each in found.listed:
        click.echo(" ".join(str(each).split()), err=True)
    count = len(found.listed)
    summary = (
        f"{format_count(count, 'finding')}" if count else "everything converted, and the box works in a simulation"
    )
    click.echo(f"{summary}; {len(found.decisions)} converted with differences, see the comments", err=True)
