"""Runs one program that may not be trusted to end: bounded in memory, files and output, and gone when we are.

A process group of its own, led by a shell that sets the limits and becomes the program. Beside it waits one reader at
the other end of its standard input, which is our lifeline: when that closes, because the work is done, was cancelled,
or because this very process was killed with no chance to clean up, the reader kills the whole group. PR_SET_PDEATHSIG
would reach only the program itself, not the helpers it starts, which are those that hang.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason

__all__ = ["Finished", "Limits", "run"]

_SHELL = "/bin/sh"
_LAUNCH = """
ulimit -c 0 && ulimit -v "$1" && ulimit -f "$2" || exit 125
input=$3
shift 3
trap '' XFSZ
exec 9<&0
(read -r _ <&9; kill -KILL 0) >/dev/null &
exec "$@" <"$input" 9<&-
"""
_BLOCK = 512  # bytes, in which POSIX counts the size of files
_MAX_ERRORS = 16 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may have.

    Args:
        memory_bytes: Of address space, each process of the group for itself.
        file_bytes: How long any file may become that it writes; writing beyond that is an error to it ("File too
            large"), not its end by a signal, of which nobody above it would learn.
        output_bytes: How much it may print; it is killed when it prints more.
    """

    memory_bytes: int
    file_bytes: int
    output_bytes: int


@dataclass(frozen=True, slots=True)
class Finished:
    """What a program left.

    Args:
        status: Its exit status; negative for a signal.
        output: What it printed, up to the limit.
        errors: The beginning of its standard error.
        is_cut: Whether it was killed for printing too much.
    """

    status: int
    output: bytes
    errors: str
    is_cut: bool


async def run(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    limits: Limits,
    input_path: str = "/dev/null",
) -> Finished:
    """Run a program to its end. Cancelled, it ends the program and all that it has started before it returns.

    Args:
        arguments: The program and its arguments; no credentials, everybody on the machine can see them.
        environment: All of its environment.
        folder: Where it runs.
        limits: What it may have.
        input_path: What it reads.

    Raises:
        ResolutionError: ``Internal``: it cannot be started.
    """
    bounds = (str(limits.memory_bytes // 1024), str(-(-limits.file_bytes // _BLOCK)))
    watched = _Watched(limits.output_bytes)
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: watched, _SHELL, "-c", _LAUNCH, _SHELL, *bounds, input_path, *arguments,
            env=dict(environment), cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        told = f"{arguments[0]} cannot be started: {error.strerror or type(error).__name__}"
        raise ResolutionError(Reason.INTERNAL, told) from None
    try:
        await asyncio.shield(watched.gone)
    finally:
        watched.let_go()
        await _until_gone(watched)
        transport.close()
    status = transport.get_returncode()
    errors = watched.errors.decode("utf-8", "replace")
    return Finished(-1 if status is None else status, bytes(watched.output), errors, watched.is_cut)


class _Watched(asyncio.SubprocessProtocol):
    """Keeps what is printed, up to a limit, and notices the end of the whole group.

    Not `asyncio.subprocess.Process`: its ``wait`` is over only when the pipes are closed, and a helper that the program
    left running would never close them.

    Args:
        limit: How many bytes of output are kept; more ends the program.
    """

    def __init__(self, limit: int) -> None:
        self.output = bytearray()
        self.errors = bytearray()
        self.is_cut = False
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._limit = limit
        self._lifeline: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._lifeline = transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept, limit = (self.output, self._limit) if fd == 1 else (self.errors, _MAX_ERRORS)
        kept += data[: limit - len(kept) + 1]
        if len(kept) > limit:
            del kept[limit:]
            if fd == 1:
                self.is_cut = True
                self.let_go()

    def process_exited(self) -> None:
        self.let_go()  # what it has started and left behind ends too

    def connection_lost(self, exc: Exception | None) -> None:
        # The program has ended and nobody has our pipes any more. All of the group had them, the reader too.
        if not self.gone.done():
            self.gone.set_result(None)

    def let_go(self) -> None:
        """Close the lifeline."""
        if self._lifeline is not None:
            self._lifeline.close()


async def _until_gone(watched: _Watched) -> None:
    """Wait for the end, also while being cancelled: the folder is removed after this."""
    is_cancelled = False
    while not watched.gone.done():
        try:
            await asyncio.shield(watched.gone)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError
