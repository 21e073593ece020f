"""Calls of an author's code in commands whose stdout is for programs: without output there, and with a time limit."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Generic, TypeVar

from konverge._internal.extras import source_folders
from konverge.errors import ConfigurationError

__all__ = ["call_with_timeout", "redirect_stdout_to_stderr"]

T = TypeVar("T")

_INTERRUPTED_SECONDS = 2.5


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Redirect the output of the block, and of processes that it starts, to stderr.

    The stdout of the command is YAML for kubectl: a ``print`` in an operator file would become part of it.
    """
    sys.stdout.flush()
    saved_stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(saved_stdout, 1)
        os.close(saved_stdout)


class _ThreadResult(Generic[T]):
    """Outcome of a call: its result or its exception."""

    def __init__(self) -> None:
        self.results: list[T] = []
        self.error: BaseException | None = None


def call_with_timeout(
    seconds: float, call: Callable[[], T], activity: str, *, interrupt: Callable[[], object] | None = None
) -> T:
    """Run a call in a daemon thread and return its result, if it ends within the time limit.

    Python cannot stop a thread; a daemon thread ends with the process.

    Args:
        seconds: The time limit.
        call: The function to call.
        activity: The description of the call for the error message.
        interrupt: Requests the end of the call after Ctrl-C, so that it can clean up for a moment.

    Raises:
        konverge.errors.ConfigurationError: The call did not end in time (the message has its position), or it raised an
            exception that ends programs, such as `SystemExit`.
        Exception: The exception of the call.
    """
    outcome: _ThreadResult[T] = _ThreadResult()
    ended = threading.Event()

    def run() -> None:
        try:
            outcome.results.append(call())
        except BaseException as error:  # noqa: BLE001  # also SystemExit, which would end the thread silently
            outcome.error = error
        finally:
            ended.set()

    thread = threading.Thread(target=run, name=activity, daemon=True)
    thread.start()
    try:
        ended.wait(seconds)  # not `Thread.join`, which treats the thread as ended after an interrupt
    except KeyboardInterrupt:  # only the main thread gets it
        if interrupt is not None:
            interrupt()
            for _ in range(2):
                with suppress(KeyboardInterrupt):  # pressed again
                    ended.wait(_INTERRUPTED_SECONDS)
        raise
    if outcome.results:
        return outcome.results[0]
    if outcome.error is None:
        raise ConfigurationError(f"{activity}: not finished within {seconds:g} s{_describe_position(thread)}")
    if isinstance(outcome.error, Exception):
        raise outcome.error
    # Threads get no signals: the code itself raised it, not a Ctrl-C of the user.
    raise ConfigurationError(f"{activity}: ended by {type(outcome.error).__name__}") from outcome.error


def _describe_position(thread: threading.Thread) -> str:
    """Return the position of a thread: the innermost line outside konverge."""
    frame = sys._current_frames().get(thread.ident or 0)  # the documented way
    own = source_folders()
    for summary in reversed(traceback.extract_stack(frame) if frame is not None else []):
        if not summary.filename.startswith(own):
            return f": it is at {summary.filename}, line {summary.lineno}, in {summary.name}"
    return ""
