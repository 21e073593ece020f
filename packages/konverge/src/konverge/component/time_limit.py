"""A time limit for an author's functions, which are synchronous and run in the event loop's thread.

A guard that never returns would hold up every owner of the operator, for ever and without a word. Nothing inside the
loop can notice, so a thread watches: whoever calls a function leaves a number in a slot, and takes it away after. A
number that stays for too long makes the watcher raise `FunctionInterrupt` in the caller's thread
(``PyThreadState_SetAsyncExc``), which ends the function at its next instruction.

What it cannot do:

* A call into C that blocks (``time.sleep``, a socket without a time-out, a regular expression gone wild) is ended only
  when it returns to Python.
* A function that catches ``BaseException`` in a loop gets it again and again, and may ignore it for ever.
* What the function leaves half done stays so. A lock that it took by ``acquire()`` can remain locked.
* Time in which the whole process stood still (a debugger, a stopped container) counts.

The exception must never strike the caller instead of the function. It may be on its way when the function returns, so
`TimeLimit.call` does three things in this order, all of them where it catches `FunctionInterrupt`: it takes the number
away, so
that the watcher begins nothing new; waits while the watcher is in the middle of it; and calls back what has not struck
yet. The two threads need no lock for it, which one of them might be struck inside of: under the interpreter's lock
they see each other's assignments in order. Without that lock (a free-threaded interpreter) there is no limit.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import PurePath
from types import TracebackType
from typing import TypeVar

from konverge.errors import FunctionInterrupt, FunctionTimeoutError, KonvergeError, format_error

__all__ = ["TimeLimit", "call_with_limit"]

T = TypeVar("T")

_MAX_PERIOD_SECONDS = 1.0
_PERIODS = 5  # in which a limit is measured: it is exceeded by a fifth of it at most
_HANDSHAKE_SECONDS = 0.0005

_set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = (ctypes.c_ulong, ctypes.py_object)
_NOTHING = ctypes.py_object()  # a null pointer, which calls back what has not struck yet


class TimeLimit:
    """Calls functions for no longer than so long; for one thread, the first that calls.

    The thread that watches starts with the first call and ends with `close`.

    Args:
        limit: How long a function may take; zero is without a limit.
    """

    def __init__(self, limit: timedelta) -> None:
        self._seconds = limit.total_seconds()
        self._period = min(self._seconds / _PERIODS, _MAX_PERIOD_SECONDS)
        self._is_on = self._seconds > 0 and getattr(sys, "_is_gil_enabled", lambda: True)()
        self._numbers = count(1)
        self._caller = 0
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        # The slot: what is being called, and how far the watcher is with it.
        self._calling = 0
        self._is_striking = False
        self._has_struck = False

    def call(self, function: Callable[..., T], *args: object) -> T:
        """Call the function. Inside of another call it is that one's limit that counts.

        Raises:
            FunctionTimeoutError: It did not return in time; the message says where it was.
        """
        if self._calling or not self._is_on:
            return function(*args)
        caller = threading.get_ident()
        if caller != self._caller and not self._start(caller):
            return function(*args)
        try:
            try:
                self._calling = next(self._numbers)
                return function(*args)
            finally:
                self._calling = 0
                if self._is_striking or self._has_struck:
                    self._call_watched()
        except FunctionInterrupt as error:
            # It may have struck in the lines above, before they were through.
            self._calling = 0
            self._call_watched()
            told = f"it did not return within {self._seconds:g} s{_describe_location(error.__traceback__)}"
            raise FunctionTimeoutError(": ".join((*error.args, told))) from None

    def close(self) -> None:
        """End the watching. Functions that are called after it have no limit."""
        self._is_on = False
        self._closed.set()
        if self._watcher is not None:
            self._watcher.join()

    def _start(self, caller: int) -> bool:
        """Begin to watch this thread; tells whether it is the one that is watched."""
        if self._watcher is not None:
            return False
        self._caller = caller
        self._watcher = threading.Thread(target=self._watch, name="konverge time limit", daemon=True)
        self._watcher.start()
        return True

    def _call_watched(self) -> None:
        while self._is_striking:
            # An event of its own: being struck in here leaves nothing locked that anybody needs.
            threading.Event().wait(_HANDSHAKE_SECONDS)
        _set_async_exc(self._caller, _NOTHING)
        self._has_struck = False

    def _watch(self) -> None:
        seen, since = 0, 0.0
        while not self._closed.wait(self._period):
            calling = self._calling
            if calling != seen or not calling:
                seen, since = calling, 0.0
                continue
            since += self._period
            if since >= self._seconds:
                self._interrupt(seen)
                since = 0.0

    def _interrupt(self, calling: int) -> None:
        self._is_striking = True
        if self._calling == calling:
            # First, so that whoever is struck at once knows that it was.
            self._has_struck = True
            _set_async_exc(self._caller, FunctionInterrupt)
        self._is_striking = False


def call_with_limit(limit: TimeLimit | None, function: Callable[..., T], *args: object) -> T:
    """Call an author's function, for no longer than the limit; None is without a limit.

    Raises:
        FunctionTimeoutError: It did not return in time.
        KonvergeError: It raised what is no ``Exception``.
        Exception: Whatever it raises.
        KeyboardInterrupt: Somebody interrupted the process.
    """
    try:
        return function(*args) if limit is None else limit.call(function, *args)
    except (Exception, KeyboardInterrupt):
        raise
    # A ``sys.exit`` of a library, a panic of an extension in Rust, a future that was cancelled: not this pass was.
    except BaseException as error:
        raise KonvergeError(format_error(error)) from error


def _describe_location(trace: TracebackType | None) -> str:
    """Where the function was: the last of its frames. Files, lines and names tell no values."""
    if trace is None or trace.tb_next is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"; it was in {code.co_name} ({PurePath(code.co_filename).name}, line {trace.tb_lineno})"
