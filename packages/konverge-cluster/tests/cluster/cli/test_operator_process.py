"""The process of an operator and its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge_cluster._internal.cli.operator_process import operator_process
from tests.cancellation_leaks import cancel_again, find_leaks, run_loop_turns


@pytest.mark.parametrize("turns", range(0, 12, 2))
def test_one_who_is_cancelled_at_any_moment_and_again_leaves_no_process(tmp_path: Path, turns: int) -> None:
    async def run_process() -> None:
        nowhere = tmp_path / "nowhere"
        async with operator_process(nowhere, nowhere, "default", tmp_path / "log"):
            await asyncio.Event().wait()

    async def cancel_twice() -> None:
        process_task = asyncio.create_task(run_process())
        await run_loop_turns(turns)
        await cancel_again(process_task)
        with pytest.raises(asyncio.CancelledError):
            await process_task

    assert find_leaks(cancel_twice()) == []
