"""The time limit of author functions: interrupted functions, other functions and unaffected callers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from konverge._internal.component import TimeLimit, time_limit
from konverge.errors import FunctionInterrupt, KonvergeError

LIMIT = timedelta(milliseconds=20)


@pytest.fixture
def limit() -> Iterator[TimeLimit]:
    limit = TimeLimit(LIMIT)
    yield limit
    limit.close()


def spin() -> None:
    while True:
        pass


def test_a_function_that_returns_in_time_is_only_called(limit: TimeLimit) -> None:
    assert limit.call(lambda one, other: one + other, 1, 2) == 3


def test_an_error_of_the_function_is_passed_on(limit: TimeLimit) -> None:
    with pytest.raises(ZeroDivisionError):
        limit.call(lambda: 1 // 0)


def test_an_endless_loop_is_ended_and_its_place_told(limit: TimeLimit) -> None:
    with pytest.raises(
        KonvergeError, match=r"^it did not return within 0\.02 s; it was in spin \(test_time_limit\.py, "
    ):
        limit.call(spin)


TRACED = """
import sys
from datetime import timedelta
from konverge._internal.component import TimeLimit
from konverge.errors import KonvergeError
def spin():
    while True:
        pass
def trace(frame, event, argument):
    return trace
limit = TimeLimit(timedelta(milliseconds=20))
sys.settrace(trace)
for _ in range(2):
    try:
        limit.call(spin)
    except KonvergeError as error:
        print(error)
limit.close()
"""


def test_an_endless_loop_is_ended_under_a_debugger() -> None:
    """In a process of its own: an interpreter that hangs here ends at no time limit of pytest."""
    run = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=True)

    assert run.stdout.count("it did not return within 0.02 s; it was in ") == 2, run.stderr


def test_the_next_call_has_its_whole_time(limit: TimeLimit) -> None:
    for _ in range(3):
        with pytest.raises(KonvergeError):
            limit.call(spin)
        assert limit.call(sum, range(1000)) == 499500


def test_a_loop_that_tries_again_after_any_exception_is_ended(limit: TimeLimit) -> None:
    def stubborn() -> None:
        while True:
            try:
                raise ConnectionError
            except Exception:  # noqa: BLE001
                pass

    with pytest.raises(KonvergeError, match="in stubborn"):
        limit.call(stubborn)


def test_a_loop_that_catches_even_this_is_struck_again(limit: TimeLimit) -> None:
    struck: list[BaseException] = []

    def deaf() -> None:
        while len(struck) < 2:
            try:
                spin()
            except BaseException as error:  # noqa: BLE001
                struck.append(error)
        spin()

    with pytest.raises(KonvergeError):
        limit.call(deaf)
    assert len(struck) == 2


@pytest.mark.slow
def test_a_blocking_call_is_ended_when_it_returns(limit: TimeLimit) -> None:
    reached = []

    def blocks() -> None:
        threading.Lock().acquire(timeout=0.1)
        lock = threading.Lock()
        lock.acquire()
        lock.acquire(timeout=0.5)
        reached.append("after")

    with pytest.raises(KonvergeError, match="in blocks"):
        limit.call(blocks)
    assert reached == []


def test_inside_of_another_call_the_outer_limit_counts(limit: TimeLimit) -> None:
    with pytest.raises(KonvergeError) as raised:
        limit.call(limit.call, spin)
    assert str(raised.value).count("did not return") == 1


def test_another_thread_is_not_limited(limit: TimeLimit) -> None:
    limit.call(int)
    done: list[Any] = []

    def patient() -> None:
        threading.Event().wait(0.1)
        done.append("all of it")

    thread = threading.Thread(target=lambda: limit.call(patient))
    thread.start()
    thread.join()
    assert done == ["all of it"]


@pytest.mark.parametrize("is_closed", [True, False])
def test_without_a_limit_nothing_is_watched(is_closed: bool) -> None:
    limit = TimeLimit(LIMIT if is_closed else timedelta(0))
    if is_closed:
        limit.close()
    before = threading.active_count()
    assert limit.call(threading.active_count) == before


def test_closing_ends_the_watching() -> None:
    before = threading.active_count()
    limit = TimeLimit(LIMIT)
    limit.call(int)
    limit.close()
    assert threading.active_count() == before


def test_a_strike_that_is_under_way_when_the_function_ends_hits_nobody_after_it(
    limit: TimeLimit, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way = threading.Event()
    set_async_exc = time_limit._set_async_exc

    def slowly(thread: int, error: object) -> None:
        if error is FunctionInterrupt:
            under_way.set()
            threading.Event().wait(0.01)
        set_async_exc(thread, error)

    monkeypatch.setattr(time_limit, "_set_async_exc", slowly)

    for _ in range(5):
        under_way.clear()
        with suppress(KonvergeError):
            limit.call(under_way.wait)
        # Where a strike that is late would hit.
        assert limit.call(sum, range(1000)) == 499500
        threading.Event().wait(0.02)
