"""The command line: ``konverge run``, ``local``, ``crd`` and ``demo``.

In comes a command, out go lines for a person or YAML and JSON for a program, and an exit code that a script can rely on
(`konverge.cli.failures`). Each command is a module, imported when it is called: ``konverge --help`` loads click and
nothing else. What a command decides is in a module without input and output beside it (`story`, `operator_file`).
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """The entry point of the ``konverge`` script."""
    try:
        from konverge.cli.program import run
        from konverge.cli.signals import sigterm_is_ctrl_c

        sigterm_is_ctrl_c()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # in the middle of an import, or of telling what went wrong
        code = 130  # that of `run`
    sys.exit(code)
