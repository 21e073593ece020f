"""The ``konverge`` command: its sub-commands, loaded when they are called, and what happens when one fails."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeVar

import click

from konverge.cli.exit_codes import ExitCode, find_exit_code, format_failure, iter_errors

__all__ = ["konverge", "run_command", "set_failure_code", "verbose_option"]

F = TypeVar("F", bound=Callable[..., Any])

# The command, the module that has it under its own name, and the line in the list of commands.
_COMMANDS = {
    "box": ("konverge.cli.box", "Check and run operators that are written as data."),
    "crd": ("konverge.cli.crd", "Print the CustomResourceDefinitions of an operator file."),
    "demo": ("konverge.cli.demo", "Watch an operator bring up, heal, suspend and clean up an application."),
    "diff": ("konverge.cli.diff", "Show what an operator file would change in a cluster, field by field."),
    "explain": ("konverge.cli.explain", "Explain why an owner's components say what they say."),
    "local": ("konverge.cli.local", "Start and stop a cluster on this machine."),
    "preview": ("konverge.cli.preview", "Print the objects that an operator file wants for an owner."),
    "rbac": ("konverge.cli.rbac", "Print the account and the roles that an operator file needs."),
    "resolve": ("konverge.cli.resolve", "Get a remote definition, and lock what it refers to."),
    "resolvers": ("konverge.cli.resolvers", "Run the resolvers of remote definitions in a cluster."),
    "run": ("konverge.cli.run", "Run an operator file against a cluster."),
    "types": ("konverge.cli.types", "Print custom resources as TypedDicts for editors and type checkers."),
    "webhooks": ("konverge.cli.webhooks", "Print the webhook configurations of an operator file."),
    "version": ("konverge.cli.version", "Print the version of konverge."),
}
_VERBOSE = "konverge.cli.verbose"
_FAILED = "konverge.cli.failed"


class _LazyCommandGroup(click.Group):
    """A group whose commands are imported when they are called, and listed without being imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command = getattr(import_module(module), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(_COMMANDS.items())])


def verbose_option(command: F) -> F:
    """Give a command ``-v``: log what it does, and show the traceback when it fails. Read it with `is_verbose`."""

    def remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.find_root().meta[_VERBOSE] = True

    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Log what happens, and show the traceback of a failure.",
    )(command)


def is_verbose(ctx: click.Context) -> bool:
    """Tell whether ``-v`` was given, before or after the command's name."""
    return bool(ctx.find_root().meta.get(_VERBOSE))


def set_failure_code(ctx: click.Context, code: ExitCode) -> None:
    """Have the command answer that code where others answer 1: its own 1 says something else."""
    ctx.find_root().meta[_FAILED] = code


@click.group(cls=_LazyCommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@verbose_option
def konverge() -> None:
    """Kubernetes operators in Python, and clusters on this machine to run them on."""


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and answer its exit code (`ExitCode`); a failure is one line on stderr."""
    ctx: click.Context | None = None
    try:
        with konverge.make_context("konverge", list(arguments)) as ctx:
            konverge.invoke(ctx)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as refused:
        refused.show()
        return refused.exit_code
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Who read our output has seen enough. Without this the interpreter would complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001  # the program's outermost frame: whatever it is becomes one line
        if ctx is not None and is_verbose(ctx):
            traceback.print_exception(error)
        for failure in iter_errors(error):
            click.echo(f"konverge: {format_failure(failure)}", err=True)
        code = find_exit_code(error)
        return ctx.meta.get(_FAILED, code) if ctx is not None and code is ExitCode.FAILED else code
    sys.stdout.flush()
    return ExitCode.DONE
