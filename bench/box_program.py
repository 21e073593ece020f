"""Runs boxes in one measured process: ``python -m bench.box_program KUBECONFIG FILE...``.

It records no events, like the operator in Python with which boxes are compared.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from bench.w1.start_signal import wait_for_go
from konverge._internal.client.connect import connect
from konverge.operator import RunOptions
from konverge_box._internal.runtime import build_box_operator
from konverge_box._internal.runtime.box_validation import load_valid_box

__all__ = ["USER_AGENT"]

USER_AGENT = "bench-box"


async def main(kubeconfig: str, files: list[Path]) -> None:
    operators = [build_box_operator(load_valid_box(file.read_bytes(), file=str(file)), file=file) for file in files]
    async with connect(kubeconfig, user_agent=USER_AGENT, env={}) as client:
        wait_for_go()
        options = RunOptions(records_events=False)
        if len(operators) == 1:
            await operators[0].run(client, options, stops_on_signals=True)
            return
        async with asyncio.TaskGroup() as tasks:
            for operator in operators:
                tasks.create_task(operator.run(client, options))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(main(sys.argv[1], [Path(file) for file in sys.argv[2:]]))
