"""Waits for a condition, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from konverge.clock import SimulatedClock
from konverge.errors import NotFoundError
from konverge_cluster.testing import eventually

pytestmark = pytest.mark.anyio


async def test_the_first_truthy_answer_is_returned() -> None:
    answers: Iterator[list[str]] = iter([[], [], ["pod"]])

    assert await eventually(lambda: next(answers), clock=SimulatedClock()) == ["pod"]


async def test_an_async_check_is_awaited() -> None:
    async def answer() -> int:
        return 42

    assert await eventually(answer, clock=SimulatedClock()) == 42


async def test_assertions_and_refusals_of_the_cluster_count_as_not_yet() -> None:
    failures: Iterator[Exception | None] = iter([AssertionError("not ready"), NotFoundError("no such pod"), None])

    def check() -> bool:
        failure = next(failures)
        if failure is not None:
            raise failure
        return True

    assert await eventually(check, clock=SimulatedClock())


async def test_a_mistake_in_the_check_passes_through_at_once() -> None:
    def check() -> bool:
        raise KeyError("spec")

    with pytest.raises(KeyError):
        await eventually(check, clock=SimulatedClock())


async def test_the_deadline_is_on_the_cluster_s_clock() -> None:
    clock = SimulatedClock()

    with pytest.raises(AssertionError):
        await eventually(lambda: False, clock=clock, timeout_seconds=3600)

    assert clock.monotonic() == pytest.approx(3600, abs=1)


async def test_the_failure_tells_what_was_awaited_and_the_last_answer() -> None:
    with pytest.raises(AssertionError, match="not within 5 s: the pod is ready\nthe last result was {}"):
        await eventually(dict, clock=SimulatedClock(), timeout_seconds=5, describe="the pod is ready")


async def test_the_failure_tells_the_last_error() -> None:
    def check() -> bool:
        raise NotFoundError("no such pod")

    with pytest.raises(AssertionError, match="the last result was NotFoundError: no such pod"):
        await eventually(check, clock=SimulatedClock(), timeout_seconds=5)


async def test_a_check_that_hangs_ends_at_the_deadline() -> None:
    with pytest.raises(AssertionError, match="the first check did not end in time"):
        await eventually(asyncio.Event().wait, clock=SimulatedClock(), timeout_seconds=5)


async def test_a_time_out_of_the_check_itself_is_a_mistake_of_the_check() -> None:
    def check() -> bool:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await eventually(check, clock=SimulatedClock())
