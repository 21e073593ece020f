"""Running what an author wrote where stdout is for a program: nothing of it gets there, and it comes to an end."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Generic, TypeVar

from konverge.errors import ConfigurationError
from konverge.extras import source_folders

__all__ = ["call_with_timeout", "redirect_stdout_to_stderr"]

T = TypeVar("T")

_INTERRUPTED_SECONDS = 2.5


@contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """What is printed while the block runs goes to stderr, also by processes that it starts.

    Our own stdout is YAML that is piped to kubectl: a ``print`` in an operator file would become part of it.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


class _ThreadResult(Generic[T]):
    """What a call came to: its result, or what it raised."""

    def __init__(self) -> None:
        self.results: list[T] = []
        self.error: BaseException | None = None


def call_with_timeout(
    seconds: float, call: Callable[[], T], what: str, *, interrupt: Callable[[], object] | None = None
) -> T:
    """The result of a call, which runs in a thread that nobody waits for any longer than that.

    A thread cannot be ended; a daemon's ends with the process.

    Args:
        seconds: How long it may take.
        call: What to do.
        what: What it is called in the message.
        interrupt: Asks the call to end, where a Ctrl-C is to leave nothing that it has started; then it has a moment.

    Raises:
        konverge.errors.ConfigurationError: It did not come to an end, with the place where it is; or it was ended by
            what is meant to end a program.
        Exception: Whatever the call raises.
    """
    outcome: _ThreadResult[T] = _ThreadResult()
    ended = threading.Event()

    def run() -> None:
        try:
            outcome.results.append(call())
        except BaseException as error:  # noqa: BLE001  # also SystemExit, which would end the thread without a word
            outcome.error = error
        finally:
            ended.set()

    thread = threading.Thread(target=run, name=what, daemon=True)
    thread.start()
    try:
        ended.wait(seconds)  # an interrupted `Thread.join` takes the thread for ended
    except KeyboardInterrupt:  # of which the thread hears nothing
        if interrupt is not None:
            interrupt()
            for _ in range(2):
                with suppress(KeyboardInterrupt):  # pressed again
                    ended.wait(_INTERRUPTED_SECONDS)
        raise
    if outcome.results:
        return outcome.results[0]
    if outcome.error is None:
        raise ConfigurationError(f"{what} did not come to an end in {seconds:g} s{_describe_position(thread)}")
    if isinstance(outcome.error, Exception):
        raise outcome.error
    # A thread hears of no signal: it was the code itself, not somebody's Ctrl-C.
    raise ConfigurationError(f"{what} was ended by {type(outcome.error).__name__}") from outcome.error


def _describe_position(thread: threading.Thread) -> str:
    """Where a thread is: the innermost line that is not konverge's."""
    frame = sys._current_frames().get(thread.ident or 0)  # the way that the standard library documents
    own = source_folders()
    for each in reversed(traceback.extract_stack(frame) if frame is not None else []):
        if not each.filename.startswith(own):
            return f": it is at {each.filename}, line {each.lineno}, in {each.name}"
    return ""
