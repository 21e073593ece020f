"""Work that must finish before a cancellation takes effect."""

from __future__ import annotations

import asyncio

import pytest

from konverge._internal.cancellation import await_shielded
from tests.cancellation_leaks import run_loop_turns

pytestmark = pytest.mark.anyio


async def start_task(work: asyncio.Future[str]) -> asyncio.Task[str]:
    task = asyncio.create_task(await_shielded(work))
    await run_loop_turns()  # it begins to wait
    return task


async def test_what_comes_of_it_is_given_back() -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await start_task(work)
    work.set_result("done")
    assert await task == "done"


async def test_its_failure_is_raised() -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await start_task(work)
    work.set_exception(OSError("no"))
    with pytest.raises(OSError, match="no"):
        await task


@pytest.mark.parametrize("failure", [None, OSError("nobody hears of it")])
async def test_a_cancellation_waits_for_the_end_however_often_it_comes(failure: OSError | None) -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await start_task(work)
    for _ in range(3):
        task.cancel()
        await run_loop_turns()  # it hears of that
        assert not task.done()
        assert not work.cancelled()
    if failure is None:
        work.set_result("done")
    else:
        work.set_exception(failure)
    with pytest.raises(asyncio.CancelledError):
        await task
