"""A server of Debian's that a test starts, on ports that are free."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.database_servers import free_port, skip_or_fail

__all__ = ["require_program", "server_process"]

_TRIES = 3
_START_SECONDS = 30


def require_program(program: str) -> str:
    """The path of a program; where there is none, the case is left out, or fails where it must not be."""
    path = shutil.which(program)
    if path is None:
        skip_or_fail(program)
        raise AssertionError("unreachable: the case was left out")
    return path


@contextmanager
def server_process(
    start: Callable[[Sequence[int]], subprocess.Popen[bytes]], count: int, log: Path
) -> Iterator[list[int]]:
    """Its ports while it runs; ended afterwards.

    Args:
        start: Starts it on these ports of the loopback interface.
        count: How many ports it needs.
        log: Where it says why it does not start.
    """
    for _ in range(_TRIES):  # somebody else may take the free ports first
        ports = [free_port() for _ in range(count)]
        process = start(ports)
        if _is_ready(process, ports):
            try:
                yield ports
            finally:
                process.terminate()
                process.wait(20)
            return
        process.kill()
        process.wait()
    raise AssertionError(f"it has not started:\n{log.read_text()[-3000:]}")


def _is_ready(process: subprocess.Popen[bytes], ports: Sequence[int]) -> bool:
    """Wait until a server listens on all of its ports; false when it ends before, or does not within half a minute."""
    for _ in range(_START_SECONDS * 50):
        if process.poll() is not None:
            return False
        if all(_answers(port) for port in ports):
            return True
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    return False


def _answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
