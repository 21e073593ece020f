"""Runner of a program that may never end: limits on memory, time, files and output; it ends with this process.

The program has its own process group, led by a shell that sets the limits and becomes the program. A reader waits at
the other end of its standard input, the lifeline. The lifeline closes when the work is done, is cancelled, or this
process is killed. Then the reader kills the whole group. PR_SET_PDEATHSIG would reach only the program itself, not the
helpers that it starts, and these are the ones that hang.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from konverge._internal.cancellation import await_shielded
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason

__all__ = ["ProcessLimits", "ProcessResult", "run_process"]

_SHELL = "/bin/sh"
_LAUNCH = """
ulimit -c 0 && ulimit -v "$1" && ulimit -f "$2" && ulimit -S -t "$3" || exit 125
input=$4
shift 4
trap '' XFSZ
exec 9<&0
(read -r _ <&9; kill -KILL 0) >/dev/null &
exec "$@" <"$input" 9<&-
"""
_BLOCK = 512  # bytes; POSIX counts file sizes in blocks
_MAX_ERRORS = 16 * 1024
_ENDLESS_ERRORS = 1 << 20  # text of the server goes there and can be endless


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Limits of one program.

    Args:
        memory_bytes: Address space of each process of the group, in bytes; None for no limit.
        file_bytes: Maximum size of each file; a larger write is an error for the program ("File too large"), not a
            signal, which its parents would not notice.
        output_bytes: Maximum size of the output; the program is killed above it.
        cpu_seconds: CPU time of each process of the group, in seconds; waiting does not count.
    """

    memory_bytes: int | None
    file_bytes: int
    output_bytes: int
    cpu_seconds: int = 30


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """Result of a program.

    Args:
        status: The exit status; negative for a signal.
        output: The output, up to the limit.
        errors: The beginning of its standard error.
        is_truncated: Whether it was killed for too much output.
        is_out_of_memory: Whether it was killed because `wait_until_exceeded` returned (see `run_process`).
    """

    status: int
    output: bytes
    errors: str
    is_truncated: bool
    is_out_of_memory: bool = False


async def run_process(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    limits: ProcessLimits,
    input_path: str = "/dev/null",
    wait_until_exceeded: Callable[[int], Coroutine[Any, Any, None]] | None = None,
) -> ProcessResult:
    """Run a program to its end. A cancellation ends it with its child processes before this returns.

    Args:
        arguments: The program and its arguments; no credentials, because all users of the machine can see them.
        environment: Its whole environment.
        folder: The working folder.
        limits: The limits.
        input_path: The file for its standard input.
        wait_until_exceeded: Given the process id, returns when the process exceeds its limits; cancelled when it ends.

    Raises:
        ResolutionError: ``Internal``: the program cannot be started.
    """
    memory = "unlimited" if limits.memory_bytes is None else limits.memory_bytes // 1024
    bounds = (memory, -(-limits.file_bytes // _BLOCK), limits.cpu_seconds)
    launched = [_SHELL, "-c", _LAUNCH, _SHELL, *map(str, bounds), input_path, *arguments]
    watched = _GroupProtocol(limits.output_bytes)
    async with _process(watched, launched, env=dict(environment), cwd=folder) as transport:
        watching = (
            [] if wait_until_exceeded is None else [asyncio.create_task(wait_until_exceeded(transport.get_pid()))]
        )
        try:
            await asyncio.wait([watched.gone, *watching], return_when=asyncio.FIRST_COMPLETED)
            is_starved = not watched.gone.done()
            for each in watching if is_starved else ():
                each.result()  # a watcher that failed is not a program that uses too much
        finally:
            for each in watching:
                each.cancel()
    status = transport.get_returncode()
    errors = watched.errors.decode("utf-8", "replace")
    return ProcessResult(-1 if status is None else status, bytes(watched.output), errors, watched.is_cut, is_starved)


@asynccontextmanager
async def _process(
    watched: _GroupProtocol, launched: Sequence[str], **options: Any
) -> AsyncIterator[asyncio.SubprocessTransport]:
    """Run a program during the block; afterwards it is gone with its child processes in any case."""
    starting = asyncio.create_task(
        asyncio.get_running_loop().subprocess_exec(
            lambda: watched, *launched, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, **options
        )
    )
    try:
        try:
            transport, _ = await await_shielded(starting)  # an interrupted start would leave unknown processes
        except OSError as error:
            message = f"{launched[0]} cannot be started: {error.strerror or type(error).__name__}"
            raise ResolutionError(Reason.INTERNAL, message) from None
        yield transport
    finally:
        if starting.exception() is None:
            watched.close_lifeline()
            try:
                await await_shielded(watched.gone)  # the folder is removed after this
            finally:
                starting.result()[0].close()


class _GroupProtocol(asyncio.SubprocessProtocol):
    """Protocol that keeps limited output and detects the end of the whole process group.

    Not `asyncio.subprocess.Process`: its ``wait`` is over only when the pipes are closed, and a helper that the program
    left running would never close them.

    Args:
        limit: How many bytes of output are kept; more ends the program, as do errors without end.
    """

    def __init__(self, limit: int) -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self.is_cut = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._limit = limit
        self._errors_bytes = 0
        self._lifeline: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._lifeline = transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self.output += data[: self._limit - len(self.output) + 1]
            if len(self.output) > self._limit:
                del self.output[self._limit :]
                self._truncate()
        else:
            self.errors += data[: _MAX_ERRORS - len(self.errors)]
            self._errors_bytes += len(data)
            if self._errors_bytes > _ENDLESS_ERRORS:
                self._truncate()

    def process_exited(self) -> None:
        self.close_lifeline()  # child processes that it left behind end, too

    def connection_lost(self, exc: Exception | None) -> None:
        # The program has ended and all pipes are closed. All processes of the group had them, including the reader.
        if not self.gone.done():
            self.gone.set_result(None)

    def _truncate(self) -> None:
        self.is_cut = True
        self.close_lifeline()

    def close_lifeline(self) -> None:
        """Close the pipe that keeps the process group running."""
        if self._lifeline is not None:
            self._lifeline.close()
