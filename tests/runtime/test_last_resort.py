import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from konverge.runtime.last_resort import HELD_UP_EXIT_CODE, LastResort

STUBBORN = """
import asyncio, os, signal, sys, threading, time
from konverge.runtime.signals import signals_call

async def swallow():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue

async def main():
    stopped = asyncio.Event()
    with signals_call(stopped.set, 0.0):
        print("ready", flush=True)
        if sys.argv[1] == "blocks":
            while True:
                pass
        await asyncio.create_task(swallow(), name="reconcile shop default/corner")

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["blocks", "swallows"])
def test_a_process_that_does_not_end_is_ended_and_says_why(how: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        _, said = process.communicate(timeout=30)

    assert process.returncode == HELD_UP_EXIT_CODE
    assert "the process does not end by itself" in said
    assert how == "blocks" or "reconcile shop default/corner" in said


def test_who_is_disarmed_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[int] = []
    fired = threading.Event()

    def end(code: int) -> None:
        ended.append(code)
        fired.set()

    loop = asyncio.new_event_loop()
    resort = LastResort(end)
    resort.arm(60.0, loop)
    resort.disarm()
    assert ended == []

    with caplog.at_level(logging.CRITICAL):
        resort.arm(0.0, loop)
        assert fired.wait(10)
    loop.close()

    assert ended == [HELD_UP_EXIT_CODE]
    assert "Tasks: none" in caplog.text
