"""What must end before a cancellation takes effect."""

from __future__ import annotations

import asyncio

import pytest

from konverge.cancellation import to_its_end
from tests.cancelling import turn

pytestmark = pytest.mark.anyio


async def started(work: asyncio.Future[str]) -> asyncio.Task[str]:
    task = asyncio.create_task(to_its_end(work))
    await turn()  # it begins to wait
    return task


async def test_what_comes_of_it_is_given_back() -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await started(work)
    work.set_result("done")
    assert await task == "done"


async def test_its_failure_is_raised() -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await started(work)
    work.set_exception(OSError("no"))
    with pytest.raises(OSError, match="no"):
        await task


@pytest.mark.parametrize("failure", [None, OSError("nobody hears of it")])
async def test_a_cancellation_waits_for_the_end_however_often_it_comes(failure: OSError | None) -> None:
    work: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = await started(work)
    for _ in range(3):
        task.cancel()
        await turn()  # it hears of that
        assert not task.done()
        assert not work.cancelled()
    if failure is None:
        work.set_result("done")
    else:
        work.set_exception(failure)
    with pytest.raises(asyncio.CancelledError):
        await task
