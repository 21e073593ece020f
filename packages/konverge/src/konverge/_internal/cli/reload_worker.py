"""The process that runs one version of an operator for ``konverge run --reload``.

It is started before it is needed and imports everything that does not belong to the author. Then it receives its
settings on stdin, imports the operator file, prepares the cluster, and waits for the permission to run: another version
may still be running. Each step is reported as a line of JSON. The end of stdin is the end of the supervisor, and ends
this process too.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from konverge._internal.cli.exit_codes import ExitCode, find_exit_code, format_failure, iter_errors
from konverge._internal.cli.main import set_verbose
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.run import run, run_operator
from konverge._internal.cli.signals import handle_sigterm_as_sigint
from konverge._internal.cli.source_files import list_module_files, list_traceback_files

__all__ = ["run_worker"]

# Loaded late by a run, and by most operator files.
_PRELOADED = (
    "konverge._internal.client.http_transport",
    "konverge._internal.operator.permission_check",
    "konverge._internal.operator.process_builder",
    "konverge._internal.runtime.event_recorder",
    "konverge.options",
    "konverge.primitives",
    "konverge.webhooks",
)
_FILES_SECONDS = 0.5
# After the end of the supervisor: more than the default grace period of running reconciles.
_ORPHAN_SECONDS = 40.0


class _SupervisorChannel:
    """The pipes to the supervisor.

    Args:
        reports: The file descriptor for reports.
    """

    def __init__(self, reports: int) -> None:
        self._reports = os.fdopen(reports, "w", encoding="utf-8")
        os.set_inheritable(reports, False)
        self._lock = threading.RLock()
        self._commands: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._on_run: Callable[[], object] | None = None
        self._may_run = False
        # The author's code must not read the commands.
        self._input = os.fdopen(os.dup(0), "rb")
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        threading.Thread(target=self._read_commands, name="commands of the supervisor", daemon=True).start()

    def read_settings(self) -> dict[str, Any] | None:
        """Wait for the settings of the run; None if the supervisor has ended."""
        return self._commands.get()

    def report(self, event: str, **fields: object) -> None:
        """Send a report; without a supervisor it is dropped."""
        with self._lock, suppress(OSError):
            self._reports.write(json.dumps({"event": event, **fields}) + "\n")
            self._reports.flush()

    def report_failure(self, step: str, error: BaseException) -> None:
        """Report an error that ends the process."""
        failures = [" ".join(format_failure(failure).split()) for failure in iter_errors(error)]
        self.report(
            "failed",
            step=step,
            problem="; ".join(failures),
            code=find_exit_code(error),
            files=list_traceback_files(error),
        )

    async def wait_for_run(self) -> None:
        """Report that the run is prepared, and wait for the permission to run."""
        loop, allowed = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._on_run = lambda: loop.call_soon_threadsafe(allowed.set)
            if self._may_run:
                allowed.set()
        self.report("prepared")
        await allowed.wait()

    def _read_commands(self) -> None:
        for line in self._input:
            command = json.loads(line)
            if command["command"] == "load":
                self._commands.put(command)
                continue
            with self._lock:
                self._may_run = True
                if self._on_run is not None:
                    self._on_run()
        self._commands.put(None)
        os.kill(os.getpid(), signal.SIGTERM)
        timer = threading.Timer(_ORPHAN_SECONDS, os._exit, [ExitCode.FAILED])
        timer.daemon = True
        timer.start()


def run_worker(reports: int) -> int:
    """Run one version of an operator, and return the exit code of the process.

    Args:
        reports: The file descriptor for reports.
    """
    channel = _SupervisorChannel(reports)
    for module in _PRELOADED:
        import_module(module)
    settings = channel.read_settings()
    if settings is None:
        return ExitCode.DONE
    # The environment of the supervisor, in which the author's imports work. Bytecode names its source by whole seconds
    # and a size: after two changes in a second, the bytecode of the first one would be taken for that of the second.
    sys.path[:], sys.argv[:] = settings["path"], settings["argv"]
    sys.dont_write_bytecode = True
    try:
        operator = load_operator(parse_operator_reference(settings["operator"]))
        operator.registered.validate()
    except Exception as error:  # noqa: BLE001  # any error of the author's file is reported
        _print_traceback(error, settings)
        channel.report_failure("load", error)
        return find_exit_code(error)
    channel.report("loaded", files=list_module_files([*sys.modules.values()]))
    threading.Thread(target=_report_late_imports, args=[channel], name="late imports", daemon=True).start()
    try:
        ctx = click.Context(run)
        set_verbose(ctx, settings["verbose"])
        run_operator(ctx, operator, **_read_flags(ctx, settings["flags"]), before_run=channel.wait_for_run)
    except (KeyboardInterrupt, click.Abort):
        return ExitCode.INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the outermost frame of the process
        _print_traceback(error, settings)
        channel.report_failure("run", error)
        return find_exit_code(error)
    return ExitCode.DONE


def _read_flags(ctx: click.Context, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the command with the types that they have after its command line is parsed."""
    options = {option.name: option for option in run.params if isinstance(option, click.Option)}
    return {
        name: options[name].type_cast_value(ctx, value) if name in options else value for name, value in flags.items()
    }


def _report_late_imports(channel: _SupervisorChannel) -> None:
    """Report the files of modules that the running operator imports, for example in a function."""
    count, wake = len(sys.modules), threading.Event()
    while not wake.wait(_FILES_SECONDS):
        if len(sys.modules) != count:
            count = len(sys.modules)
            channel.report("loaded", files=list_module_files([*sys.modules.values()]))


def _print_traceback(error: BaseException, settings: Mapping[str, Any]) -> None:
    if settings["verbose"]:
        traceback.print_exception(error)


def _exit(code: int) -> NoReturn:
    """End the process without the destruction of all its objects, for which the next version would wait."""
    atexit._run_exitfuncs()  # those of the author
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or nothing reads it any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    handle_sigterm_as_sigint()
    try:
        exit_code = run_worker(int(sys.argv[1]))
    except KeyboardInterrupt:
        exit_code = ExitCode.INTERRUPTED
    _exit(exit_code)
