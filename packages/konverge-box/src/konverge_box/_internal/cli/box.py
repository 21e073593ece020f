"""``konverge box``: operators that are defined as data, in one YAML file."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Literal

import click
import msgspec

from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.plurals import format_count
from konverge._internal.cli.yaml_documents import STDIN
from konverge.errors import ConfigurationError
from konverge_box._internal.file import BoxFieldError
from konverge_box._internal.file.yaml_source import MAX_BYTES, parse_source

__all__ = ["box", "find_document_kind", "read_box"]

# Commands in their own modules, which are imported when a command is called or listed: module and command.
_COMMANDS = {
    "graph": ("konverge_box._internal.cli.box_graph", "box_graph"),
    "import": ("konverge_box._internal.cli.box_import", "box_import"),
    "lock": ("konverge_box._internal.cli.box_lock", "box_lock"),
    "package": ("konverge_box._internal.cli.box_package", "box_package"),
    "render": ("konverge_box._internal.cli.box_render", "box_render"),
    "run": ("konverge._internal.cli.run", "run"),
    "simulate": ("konverge_box._internal.cli.box_simulate", "box_simulate"),
}


class _BoxGroup(click.Group):
    """A group that imports some of its commands on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *_COMMANDS})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return super().get_command(ctx, cmd_name)
        module, name = _COMMANDS[cmd_name]
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=_BoxGroup)
def box() -> None:
    """Validate, run and package boxes: operators that are defined in one YAML file."""


@box.command()
@click.argument("files", metavar="FILE.yaml...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@verbose_option
@click.pass_context
def lint(ctx: click.Context, files: tuple[Path, ...], output: Literal["text", "json"]) -> None:
    """Validate box and simulation files without a cluster. Use - for stdin.

    The check of a simulation includes its box. Each error has the file, line, column and field, so that an editor can
    open its position. Exit code 0: no errors, 1: validation errors, 3: a file cannot be read.
    """
    # It imports everything that a running box needs, so it is not imported to list the commands.
    from konverge_box._internal.runtime.box_validation import find_box_errors

    errors: list[BoxFieldError] = []
    for file in files:
        text = read_box(file)
        # Most files are boxes: only a file with this word is parsed for its kind.
        if b"Simulation" in text and find_document_kind(text) == "Simulation":
            from konverge_box._internal.simulation import find_simulation_errors

            errors += find_simulation_errors(file, text=text)
        else:
            errors += find_box_errors(text, file=str(file))
    if output == "json":
        click.echo(json.dumps({"files": len(files), "errors": msgspec.to_builtins(errors)}, indent=2))
    else:
        for error in errors:
            click.echo(str(error))
        click.echo(f"{format_count(len(files), 'file')}, {format_count(len(errors), 'error')}", err=True)
    if errors:
        ctx.exit(ExitCode.FAILED)


def find_document_kind(text: bytes) -> str:
    """Return the kind of the first document in a file; empty if it has none or is not valid YAML."""
    sources = parse_source(text, "")
    value = sources[0].value if sources else None
    return str(value.get("kind", "")) if isinstance(value, dict) else ""


def read_box(file: Path) -> bytes:
    """Return the content of a box file or of stdin, cut off above the size that loading rejects.

    Raises:
        konverge.errors.ConfigurationError: The file cannot be read.
    """
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
