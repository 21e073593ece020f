"""The command line: the ``konverge`` program and its commands.

A command prints lines for a person, or YAML and JSON for a program, and returns a stable exit code
(`cli.exit_codes`). Each command is a module that is imported when it is called: ``konverge --help`` loads only
click. The decisions of a command are in a separate module without input and output (`explain_text`, `operator_file`).
"""

from __future__ import annotations

import sys

__all__ = ["run_program"]


def run_program() -> None:
    """Run the ``konverge`` script and exit with its code."""
    try:
        from konverge._internal.cli.main import run_command
        from konverge._internal.cli.signals import handle_sigterm_as_sigint

        handle_sigterm_as_sigint()
        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:  # during an import, or during the report of a failure
        code = 130  # the exit code of an interrupted command
    sys.exit(code)
