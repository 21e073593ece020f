"""Runs one program that may not be trusted to end: bounded in memory, files and output, and gone when we are.

A process group of its own, led by a shell that sets the limits and becomes the program. Beside it waits one reader at
the other end of its standard input, which is our lifeline: when that closes, because the work is done, was cancelled,
or because this very process was killed with no chance to clean up, the reader kills the whole group. PR_SET_PDEATHSIG
would reach only the program itself, not the helpers it starts, which are those that hang.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
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
exec 9<&0
(read -r _ <&9; kill -KILL 0) >/dev/null 2>&1 &
exec "$@" <"$input" 9<&-
"""
_BLOCK = 512  # bytes, in which POSIX counts the size of files
_MAX_ERRORS = 16 * 1024
_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What a program may have.

    Args:
        memory_bytes: Of address space, each process of the group for itself.
        file_bytes: How long any file may become that it writes.
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
    try:
        process = await asyncio.create_subprocess_exec(
            _SHELL, "-c", _LAUNCH, _SHELL, *bounds, input_path, *arguments,
            env=dict(environment), cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        told = f"{arguments[0]} cannot be started: {error.strerror or type(error).__name__}"
        raise ResolutionError(Reason.INTERNAL, told) from None
    try:
        async with asyncio.TaskGroup() as reading:
            output = reading.create_task(_output(process, limits.output_bytes))
            errors = reading.create_task(_errors(process))
            status = await process.wait()
            _let_go(process)  # what it started and left behind ends too, and with it what we read
    finally:
        await _ended(process)
    printed, is_cut = output.result()
    return Finished(status, printed, errors.result().decode("utf-8", "replace"), is_cut)


async def _output(process: Process, limit: int) -> tuple[bytes, bool]:
    assert process.stdout is not None
    pieces = bytearray()
    while piece := await process.stdout.read(_PIECE):
        pieces += piece
        if len(pieces) > limit:
            _let_go(process)
            return bytes(pieces[:limit]), True
    return bytes(pieces), False


async def _errors(process: Process) -> bytes:
    assert process.stderr is not None
    kept = bytearray()
    while piece := await process.stderr.read(_PIECE):
        kept += piece[: max(0, _MAX_ERRORS - len(kept))]
    return bytes(kept)


def _let_go(process: Process) -> None:
    """Close the lifeline."""
    assert process.stdin is not None
    process.stdin.close()


async def _ended(process: Process) -> None:
    """Close the lifeline and wait for the end, also while being cancelled: a folder is removed after this."""
    _let_go(process)
    gone = asyncio.ensure_future(_gone(process))
    is_cancelled = False
    while not gone.done():
        try:
            await asyncio.shield(gone)
        except asyncio.CancelledError:
            is_cancelled = True
    if is_cancelled:
        raise asyncio.CancelledError


async def _gone(process: Process) -> None:
    await process.wait()
    assert process.stdout is not None
    assert process.stderr is not None
    # Every process of the group but the reader has these; at their end, none is left.
    while await process.stdout.read(_PIECE):
        pass
    while await process.stderr.read(_PIECE):
        pass
