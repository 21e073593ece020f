"""Commands in processes that are forked from one in which the commands are imported already.

A start of Python with everything that a command imports takes most of a second, and a fork takes milliseconds. What
runs is the same: a process of its own with its own environment, folder, output and exit code. This file is both sides:
run as a program it forks, imported it has `CommandForkServer`, which asks for it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

# Besides the modules of all commands: what these import late, where it is installed.
_IMPORTED = (
    *(
        "konverge_resolution._internal.cli.resolve_flags",
        "konverge_resolution._internal.cli.resolve_actions",
        "konverge_resolution._internal.resolvers.git",
    ),
    *("konverge._internal.client.connect", "konverge._internal.client.http_transport", "konverge_cluster.embedded"),
    *("aiohttp", "jinja2", "nodesemver", "yaml"),
)
_LARGEST_REQUEST = 65536


class CommandForkServer:
    """Runs commands of ``konverge`` in forked processes. A context manager, whose end ends the one that forks.

    Args:
        environment: Its own; what it has read of it by the start (the locale) is so for all commands.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def __enter__(self) -> Self:
        self._asking, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with told:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(told.fileno())], env=self._environment, pass_fds=[told.fileno()]
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._asking.close()
        self._process.wait()

    def run_command(
        self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path, timeout_seconds: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for its end, as `subprocess.run` does."""
        request = json.dumps({"arguments": arguments, "environment": dict(environment), "folder": str(folder)})
        answer, told = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors, answer:
            with told:
                socket.send_fds(self._asking, [request.encode()], [output.fileno(), errors.fileno(), told.fileno()])
            answer.settimeout(timeout_seconds)
            pid = int(answer.recv(64))
            try:
                code = int(answer.recv(64))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout_seconds) from None
            printed = []
            for file in (output, errors):
                file.seek(0)
                printed.append(file.read().decode())
        return subprocess.CompletedProcess(list(arguments), code, *printed)


def _serve(asked: socket.socket) -> None:
    """Fork for each request, until nobody can ask any more."""
    commands = {found.module for found in entry_points(group="konverge.commands")}
    for module in (*sorted(commands), *_IMPORTED):
        if find_spec(module.partition(".")[0]) is not None:
            import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    while True:
        request, files, _, _ = socket.recv_fds(asked, _LARGEST_REQUEST, 3)
        if not request:
            return
        if os.fork() == 0:
            asked.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _fork_command(json.loads(request), *files)
        for file in files:
            os.close(file)


def _fork_command(request: dict[str, object], output: int, errors: int, told: int) -> None:
    """Start the command, tell its process id, and then its exit code."""
    pid = os.fork()
    if pid == 0:
        os.close(told)
        for target, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, errors)):
            os.dup2(file, target)
            os.close(file)
        _run_cli(**request)  # type: ignore[arg-type]  # as `CommandForkServer.run` has written it
    os.write(told, str(pid).encode())
    _, status = os.waitpid(pid, 0)
    os.write(told, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _run_cli(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    """Be ``python -m konverge`` with these arguments."""
    from konverge._internal.cli.main import run_command

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["konverge", *arguments]
    sys.path[0] = folder
    code = 1
    try:
        code = run_command(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        _serve(asked)
