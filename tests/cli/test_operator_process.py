"""The process of an operator, and its end."""

from __future__ import annotations

import asyncio
import gc
import warnings
from pathlib import Path

import pytest

from konverge.cli.operator_process import operator_process


@pytest.mark.parametrize("turns", range(0, 12, 2))
def test_one_who_is_cancelled_at_any_moment_and_again_leaves_no_process(tmp_path: Path, turns: int) -> None:
    async def be_beside() -> None:
        nowhere = tmp_path / "nowhere"
        async with operator_process(nowhere, nowhere, "default", tmp_path / "log"):
            await asyncio.Event().wait()

    async def cancelled_twice() -> None:
        beside = asyncio.create_task(be_beside())
        await turn(turns)
        for _ in range(2):
            beside.cancel()
            await turn(1)
        with pytest.raises(asyncio.CancelledError):
            await beside

    gc.collect()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(cancelled_twice())
        gc.collect()
    assert [str(warning.message) for warning in told] == []


async def turn(times: int) -> None:
    for _ in range(times):
        await asyncio.sleep(0)  # noqa: TID251  # no time passes: the loop has its turn
