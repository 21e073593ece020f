"""A time limit for author functions, which are synchronous and run in the event loop's thread.

A guard that never returns would block every owner of the operator forever and without a message. The blocked loop
cannot detect this, so a second thread watches. Before each function, the caller sets a number in a slot, and clears it
afterwards. If a number stays too long, the watcher raises `FunctionInterrupt` in the caller's thread
(``PyThreadState_SetAsyncExc``), which ends the function at its next instruction.

Limits:

* A blocking call into C (``time.sleep``, a socket without a timeout, a slow regular expression) ends only when it
  returns to Python.
* A function that catches ``BaseException`` in a loop gets the exception repeatedly, and can ignore it forever.
* Incomplete changes of the function stay. A lock that it took with ``acquire()`` can remain locked.
* Time in which the whole process is stopped (a debugger, a paused container) counts.

The exception must never hit the caller instead of the function. It can be pending when the function returns. Therefore
`TimeLimit.call` takes three steps in this order, all of them inside a handler for `FunctionInterrupt`. It clears the
number, so that the watcher begins no interrupt; waits while the watcher is in the middle of one; and raises the
exception itself, in place of a pending one, to catch it. ``PyThreadState_SetAsyncExc`` with a null pointer would cancel
it too, but before 3.13 the interpreter would then look for an exception at every call and every turn of a loop, and
with a trace function (a debugger, coverage) never get past the next call. The two threads use no lock, because the
exception could hit a thread inside of it: under the global interpreter lock they see each other's assignments in order.
A free-threaded interpreter has no time limit.
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
_PERIODS = 5  # the watcher checks five times per limit, so a function exceeds it by at most a fifth
_HANDSHAKE_SECONDS = 0.0005

_set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
_set_async_exc.argtypes = (ctypes.c_ulong, ctypes.py_object)


class TimeLimit:
    """A time limit for function calls of one thread, the first one that calls.

    The watcher thread starts with the first call and ends with `close`.

    Args:
        limit: The maximum duration of a function; zero is without a limit.
    """

    def __init__(self, limit: timedelta) -> None:
        self._seconds = limit.total_seconds()
        self._period = min(self._seconds / _PERIODS, _MAX_PERIOD_SECONDS)
        self._is_on = self._seconds > 0 and getattr(sys, "_is_gil_enabled", lambda: True)()
        self._numbers = count(1)
        self._caller = 0
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        # The slot: the number of the current call, and the state of the watcher's interrupt.
        self._calling = 0
        self._is_interrupting = False
        self._has_interrupted = False

    def call(self, function: Callable[..., T], *args: object) -> T:
        """Call the function. Inside another call, the limit of the outer call counts.

        Raises:
            FunctionTimeoutError: The function did not return in time; the message has its position.
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
                if self._is_interrupting or self._has_interrupted:
                    self._clear_interrupt()
        except FunctionInterrupt as error:
            # The exception can hit the lines above before they are complete.
            self._calling = 0
            self._clear_interrupt()
            problem = f"it did not return within {self._seconds:g} s{_describe_location(error.__traceback__)}"
            raise FunctionTimeoutError(": ".join((*error.args, problem))) from None

    def close(self) -> None:
        """Stop the watcher thread. Later calls have no limit."""
        self._is_on = False
        self._closed.set()
        if self._watcher is not None:
            self._watcher.join()

    def _start(self, caller: int) -> bool:
        """Start to watch this thread; return False if the watcher watches another one."""
        if self._watcher is not None:
            return False
        self._caller = caller
        self._watcher = threading.Thread(target=self._watch, name="konverge time limit", daemon=True)
        self._watcher.start()
        return True

    def _clear_interrupt(self) -> None:
        try:
            while self._is_interrupting:
                # A new event: an interrupt in here leaves no shared lock locked.
                threading.Event().wait(_HANDSHAKE_SECONDS)
            _set_async_exc(self._caller, FunctionInterrupt)
            while True:  # until the next instruction at which the interpreter looks for exceptions
                pass
        except FunctionInterrupt:
            self._has_interrupted = False

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
        self._is_interrupting = True
        if self._calling == calling:
            # Set before the interrupt, so that the interrupted thread reads it.
            self._has_interrupted = True
            _set_async_exc(self._caller, FunctionInterrupt)
        self._is_interrupting = False


def call_with_limit(limit: TimeLimit | None, function: Callable[..., T], *args: object) -> T:
    """Call an author function within the limit; None is without a limit.

    Raises:
        FunctionTimeoutError: The function did not return in time.
        KonvergeError: The function raised a ``BaseException`` that is not an ``Exception``.
        Exception: The exception of the function.
        KeyboardInterrupt: A user interrupted the process.
    """
    try:
        return function(*args) if limit is None else limit.call(function, *args)
    except (Exception, KeyboardInterrupt):
        raise
    # For example ``sys.exit`` in a library, a panic in a Rust extension, or a cancelled future. The reconcile itself
    # was not cancelled.
    except BaseException as error:
        raise KonvergeError(format_error(error)) from error


def _describe_location(trace: TracebackType | None) -> str:
    """Describe the last frame of the function. Files, lines and names contain no values."""
    if trace is None or trace.tb_next is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f"; it was in {code.co_name} ({PurePath(code.co_filename).name}, line {trace.tb_lineno})"
