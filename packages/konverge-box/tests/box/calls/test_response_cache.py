"""The cache of responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from konverge.clock import SimulatedClock
from konverge_box._internal.calls.call_result import CallResult
from konverge_box._internal.calls.response_cache import FAILURE_CACHE_SECONDS, ResponseCache

pytestmark = pytest.mark.anyio


class Asked:
    """A call that returns after a second, and counts its runs."""

    def __init__(self, clock: SimulatedClock, error: str = "", size: int = 10) -> None:
        self.clock, self.error, self.size = clock, error, size
        self.times = 0

    async def __call__(self) -> CallResult:
        self.times += 1
        await self.clock.sleep(1)
        return CallResult(fields={"number": self.times}, error=self.error, size=self.size)


def number(answer: CallResult) -> int:
    found: int = answer.fields["number"]
    return found


async def test_an_answer_is_kept_for_its_time_and_no_longer() -> None:
    clock = SimulatedClock()
    memory, ask = ResponseCache(clock), Asked(clock)
    assert number(await memory.get_or_call(b"a", 60, ask)) == 1
    await clock.sleep(59)
    assert number(await memory.get_or_call(b"a", 60, ask)) == 1
    await clock.sleep(2)
    assert number(await memory.get_or_call(b"a", 60, ask)) == 2


async def test_a_failure_is_kept_for_a_few_seconds_at_most() -> None:
    clock = SimulatedClock()
    memory, ask = ResponseCache(clock), Asked(clock, error="dead")
    await memory.get_or_call(b"a", 3600, ask)
    await memory.get_or_call(b"a", 3600, ask)
    assert ask.times == 1
    await clock.sleep(FAILURE_CACHE_SECONDS)
    await memory.get_or_call(b"a", 3600, ask)
    assert ask.times == 2


async def test_of_many_who_want_the_same_one_asks() -> None:
    clock = SimulatedClock()
    memory, ask = ResponseCache(clock), Asked(clock)
    answers = await asyncio.gather(*(memory.get_or_call(b"a", 60, ask) for _ in range(50)))
    assert ask.times == 1
    assert {number(answer) for answer in answers} == {1}


async def test_who_asks_and_is_cancelled_leaves_it_to_the_next() -> None:
    clock = SimulatedClock()
    memory, ask = ResponseCache(clock), Asked(clock)
    tasks = [asyncio.create_task(memory.get_or_call(b"a", 60, ask)) for _ in range(3)]
    await clock.sleep(0.5)
    tasks[0].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert [number(each) for each in answers[1:] if isinstance(each, CallResult)] == [2, 2]


async def test_who_asks_and_breaks_leaves_it_to_the_next() -> None:
    clock = SimulatedClock()
    memory = ResponseCache(clock)

    async def fail() -> CallResult:
        await clock.sleep(1)
        raise RuntimeError

    asks: list[Callable[[], Awaitable[CallResult]]] = [fail, Asked(clock)]
    first, second = await asyncio.gather(*(memory.get_or_call(b"a", 60, ask) for ask in asks), return_exceptions=True)
    assert isinstance(first, RuntimeError)
    assert isinstance(second, CallResult)


async def test_what_was_not_used_for_longest_makes_room() -> None:
    clock = SimulatedClock()
    memory, ask = ResponseCache(clock, entries=2), Asked(clock)
    for key in (b"a", b"b", b"a", b"c", b"a"):
        await memory.get_or_call(key, 60, ask)
    assert ask.times == 3
    await memory.get_or_call(b"b", 60, ask)
    assert ask.times == 4
    assert len(memory) == 2


async def test_the_bytes_of_all_answers_are_bounded_and_an_answer_that_alone_is_too_large_is_not_kept() -> None:
    clock = SimulatedClock()
    memory = ResponseCache(clock, size=100_000)
    for key in range(100):
        await memory.get_or_call(bytes([key]), 60, Asked(clock, size=5_000))
    assert len(memory) == 3
    await memory.get_or_call(b"large", 60, Asked(clock, size=50_000))
    assert len(memory) == 3
