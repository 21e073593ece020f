"""The ``konverge`` command: lazy loading of its subcommands, and the report of a failure."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Any, TypeVar

import click

from konverge._internal.cli.exit_codes import ExitCode, find_exit_code, format_failure, iter_errors
from konverge._internal.extras import missing_extra

__all__ = ["COMMANDS", "konverge", "run_command", "set_failure_code", "set_verbose", "verbose_option"]

F = TypeVar("F", bound=Callable[..., Any])

COMMANDS = "konverge.commands"
"""The group of entry points for commands: each has the name of the command and loads a command of click."""

# The commands of konverge and its other packages: the extra that provides the command, and its line in the list.
_KNOWN = {
    "box": ("box", "Validate, run and package operators that are defined in YAML."),
    "crd": ("", "Print the CustomResourceDefinitions of an operator file."),
    "demo": ("local", "Run a demo: an operator creates, repairs, suspends and deletes an application."),
    "diff": ("", "Show the changes that an operator file would make in a cluster, field by field."),
    "explain": ("", "Explain the conditions of an owner."),
    "init": ("", "Create a project for an operator or a box."),
    "local": ("local", "Start and stop a cluster on this machine."),
    "migrate-storage": ("", "Rewrite the objects of custom resources in their storage version."),
    "preview": ("", "Print the objects that an operator file produces for an owner."),
    "rbac": ("", "Print the ServiceAccount and the roles that an operator file needs."),
    "resolve": ("resolution", "Fetch a remote definition and lock its references."),
    "resolvers": ("resolution", "Run resolvers of remote definitions in a cluster."),
    "run": ("", "Run an operator file against a cluster."),
    "test": ("local", "Test an operator file with sample owners on an embedded cluster."),
    "types": ("", "Print TypedDicts for custom resources, for editors and type checkers."),
    "upgrade-check": ("", "Show what a new version of an operator would change and break in a cluster."),
    "webhooks": ("", "Print the webhook configurations of an operator file."),
    "version": ("", "Print the version of konverge."),
}
_VERBOSE = "konverge._internal.cli.verbose"
_FAILED = "konverge._internal.cli.failed"


class _LazyCommandGroup(click.Group):
    """A group that imports its commands when they are called and lists them without an import."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_KNOWN, *entry_points(group=COMMANDS).names})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for entry_point in entry_points(group=COMMANDS, name=cmd_name):
            command = entry_point.load()
            assert isinstance(command, click.Command)
            return command
        if cmd_name in _KNOWN:
            extra, _ = _KNOWN[cmd_name]
            raise missing_extra(f"konverge {cmd_name}", extra)
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        installed = entry_points(group=COMMANDS).names
        rows = []
        for name in self.list_commands(ctx):
            extra, summary = _KNOWN.get(name, ("", "Command of another package."))
            rows.append((name, summary if name in installed else f"{summary} Needs konverge[{extra}]."))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def verbose_option(command: F) -> F:
    """Add ``-v`` to a command: the debug log, and the traceback of a failure. Read it with `is_verbose`."""

    def remember(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
        if value:
            ctx.find_root().meta[_VERBOSE] = True

    return click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Show the debug log, and the traceback of a failure.",
    )(command)


def is_verbose(ctx: click.Context) -> bool:
    """Return whether the command line contains ``-v``, before or after the command's name."""
    return bool(ctx.find_root().meta.get(_VERBOSE))


def set_verbose(ctx: click.Context, value: bool) -> None:
    """Set what `is_verbose` returns, for a command without a command line of its own."""
    ctx.find_root().meta[_VERBOSE] = value


def set_failure_code(ctx: click.Context, code: ExitCode) -> None:
    """Set the exit code that replaces 1 for this command, because its code 1 has another meaning."""
    ctx.find_root().meta[_FAILED] = code


@click.group(cls=_LazyCommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@verbose_option
def konverge() -> None:
    """Run Kubernetes operators written in Python, and clusters on this machine for them."""


def run_command(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code (`ExitCode`); a failure is one line on stderr."""
    ctx: click.Context | None = None
    try:
        with konverge.make_context("konverge", list(arguments)) as ctx:
            konverge.invoke(ctx)
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code
    except click.ClickException as usage_error:
        usage_error.show()
        return usage_error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Without this, the interpreter fails when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    except Exception as error:  # noqa: BLE001  # the outermost frame of the program: any error becomes one line
        if ctx is not None and is_verbose(ctx):
            traceback.print_exception(error)
        for failure in iter_errors(error):
            click.echo(f"konverge: {format_failure(failure)}", err=True)
        code = find_exit_code(error)
        return ctx.meta.get(_FAILED, code) if ctx is not None and code is ExitCode.FAILED else code
    sys.stdout.flush()
    return ExitCode.DONE
