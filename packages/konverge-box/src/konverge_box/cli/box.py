"""``konverge box``: operators that are written as data, in one YAML file."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Literal

import click
import msgspec

from konverge.cli.exit_codes import ExitCode
from konverge.cli.main import verbose_option
from konverge.cli.plurals import format_count
from konverge.cli.yaml_documents import STDIN
from konverge.errors import ConfigurationError
from konverge_box.file import BoxFieldError
from konverge_box.file.yaml_source import MAX_BYTES

__all__ = ["box", "read_box"]

# Commands with a module of their own, which is imported when one is called or listed: the command, in the module.
_COMMANDS = {
    "import": ("konverge_box.cli.box_import", "box_import"),
    "lock": ("konverge_box.cli.box_lock", "box_lock"),
    "package": ("konverge_box.cli.box_package", "box_package"),
    "render": ("konverge_box.cli.box_render", "box_render"),
    "run": ("konverge.cli.run", "run"),
    "simulate": ("konverge_box.cli.box_simulate", "box_simulate"),
}


class _BoxGroup(click.Group):
    """A group some of whose commands are imported when they are needed."""

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
    """Validate box files without a cluster. Use - for stdin.

    Each error has the file, line, column and field, so that an editor can open its position. Exit code 0: no errors, 1:
    validation errors, 3: a file cannot be read.
    """
    # With everything that a running box needs: not for who lists the commands.
    from konverge_box.runtime.box_validation import find_box_errors

    found: list[BoxFieldError] = []
    for file in files:
        found += find_box_errors(read_box(file), file=str(file))
    if output == "json":
        click.echo(json.dumps({"files": len(files), "mistakes": msgspec.to_builtins(found)}, indent=2))
    else:
        for mistake in found:
            click.echo(str(mistake))
        click.echo(f"{format_count(len(files), 'file')}, {format_count(len(found), 'mistake')}", err=True)
    if found:
        ctx.exit(ExitCode.FAILED)


def read_box(file: Path) -> bytes:
    """What a box file holds, or stdin; one that is too long is cut off where loading refuses it.

    Raises:
        konverge.errors.ConfigurationError: It cannot be read.
    """
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
