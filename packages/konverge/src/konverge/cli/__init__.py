"""The command line: ``konverge run``, ``local``, ``crd`` and ``demo``.

In comes a command, out go lines for a person or YAML and JSON for a program, and an exit code that a script can rely on
(`konverge.cli.exit_codes`). Each command is a module, imported when it is called: ``konverge --help`` loads click and
nothing else. What a command decides is in a module without input and output beside it (`explain_text`,
`operator_file`).
"""

from __future__ import annotations

import sys

__all__ = ["run_program"]


def run_program() -> None:
    """The entry point of the ``konverge`` script."""
    try:
        from konverge.cli.main import run_command
        from konverge.cli.signals import handle_sigterm_as_sigint

        handle_sigterm_as_sigint()
        code = run_command(sys.argv[1:])
    except KeyboardInterrupt:  # in the middle of an import, or of telling what went wrong
        code = 130  # that of `run`
    sys.exit(code)
