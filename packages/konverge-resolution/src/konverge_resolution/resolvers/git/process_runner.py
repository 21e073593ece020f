"""Runs one program that may not be trusted to end: bounded in memory, time, files and output, gone when we are.

A process group of its own, led by a shell that sets the limits and becomes the program. Beside it waits one reader at
the other end of its standard input, which is our lifeline: when that closes, because the work is done, was cancelled,
or because this very process was killed with no chance to clean up, the reader kills the whole group. PR_SET_PDEATHSIG
would reach only the program itself, not the helpers it starts, which are those that hang.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from konverge.cancellation import await_shielded
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason

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
_BLOCK = 512  # bytes, in which POSIX counts the size of files
_MAX_ERRORS = 16 * 1024
_ENDLESS_ERRORS = 1 << 20  # what a server says goes there, and it may have no end


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """What a program may have.

    Args:
        memory_bytes: Of address space, each process of the group for itself.
        file_bytes: How long any file may become that it writes; writing beyond that is an error to it ("File too
            large"), not its end by a signal, of which nobody above it would learn.
        output_bytes: How much it may print; it is killed when it prints more.
        cpu_seconds: How long it may compute, each process of the group for itself; waiting does not count.
    """

    memory_bytes: int
    file_bytes: int
    output_bytes: int
    cpu_seconds: int = 30


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What a program left.

    Args:
        status: Its exit status; negative for a signal.
        output: What it printed, up to the limit.
        errors: The beginning of its standard error.
        is_truncated: Whether it was killed for printing too much.
        is_out_of_memory: Whether it was killed because `until_too_much` returned (see `run`).
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
    """Run a program to its end. Cancelled, it ends the program and all that it has started before it returns.

    Args:
        arguments: The program and its arguments; no credentials, everybody on the machine can see them.
        environment: All of its environment.
        folder: Where it runs.
        limits: What it may have.
        input_path: What it reads.
        wait_until_exceeded: Given the process id, returns when the process exceeds its limits; cancelled when it ends.

    Raises:
        ResolutionError: ``Internal``: it cannot be started.
    """
    bounds = (limits.memory_bytes // 1024, -(-limits.file_bytes // _BLOCK), limits.cpu_seconds)
    launched = [_SHELL, "-c", _LAUNCH, _SHELL, *map(str, bounds), input_path, *arguments]
    watched = _GroupProtocol(limits.output_bytes)
    async with _process(watched, launched, env=dict(environment), cwd=folder) as transport:
        watching = (
            [] if wait_until_exceeded is None else [asyncio.create_task(wait_until_exceeded(transport.get_pid()))]
        )
        try:
            await asyncio.wait([watched.gone, *watching], return_when=asyncio.FIRST_COMPLETED)
            is_starved = not watched.gone.done()
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
    """A program, as long as the block runs; then it is gone with all that it has started, however the block is left."""
    starting = asyncio.create_task(
        asyncio.get_running_loop().subprocess_exec(
            lambda: watched, *launched, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True, **options
        )
    )
    try:
        try:
            transport, _ = await await_shielded(starting)  # half a start would leave processes that nobody knows
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
    """Keeps what is printed, up to a limit, and notices the end of the whole group.

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
        self.close_lifeline()  # what it has started and left behind ends too

    def connection_lost(self, exc: Exception | None) -> None:
        # The program has ended and nobody has our pipes any more. All of the group had them, the reader too.
        if not self.gone.done():
            self.gone.set_result(None)

    def _truncate(self) -> None:
        self.is_cut = True
        self.close_lifeline()

    def close_lifeline(self) -> None:
        """Close the lifeline."""
        if self._lifeline is not None:
            self._lifeline.close()
