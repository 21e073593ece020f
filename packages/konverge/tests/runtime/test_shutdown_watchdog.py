import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from konverge._internal.runtime.shutdown_watchdog import HUNG_SHUTDOWN_EXIT_CODE, ShutdownWatchdog

STUBBORN = """
import asyncio, sys, time
from konverge._internal.runtime.stop_signals import call_on_signal

async def swallow():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue

async def main():
    stopped = asyncio.Event()
    with call_on_signal(stopped.set, 0.0):
        print("ready", flush=True)
        if sys.argv[1] == "blocks":
            while True:
                time.sleep(1)  # a loop that is blocked, as by a call that never returns, is what this is about
        await asyncio.create_task(swallow(), name="reconcile shop default/corner")

asyncio.run(main())
"""


def stubborn(how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", STUBBORN, how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def terminate_when_ready(process: subprocess.Popen[str]) -> subprocess.Popen[str]:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    return process


@pytest.mark.slow
def test_a_hanging_process_is_ended_and_logs_the_cause() -> None:
    # Both at once: each gets the same five seconds.
    with stubborn("blocks") as blocking, stubborn("swallows") as swallowing:
        messages = [
            process.communicate(timeout=30)[1]
            for process in (terminate_when_ready(blocking), terminate_when_ready(swallowing))
        ]

    assert [blocking.returncode, swallowing.returncode] == [HUNG_SHUTDOWN_EXIT_CODE, HUNG_SHUTDOWN_EXIT_CODE]
    assert all("the process did not end in time" in message for message in messages)
    assert "reconcile shop default/corner" in messages[1]


def test_a_disarmed_watchdog_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[int] = []
    fired = threading.Event()

    def end(code: int) -> None:
        ended.append(code)
        fired.set()

    loop = asyncio.new_event_loop()
    resort = ShutdownWatchdog(end)
    resort.arm(60.0, loop)
    resort.disarm()
    assert ended == []

    with caplog.at_level(logging.CRITICAL):
        resort.arm(0.0, loop)
        assert fired.wait(10)
    loop.close()

    assert ended == [HUNG_SHUTDOWN_EXIT_CODE]
    assert "Tasks: none" in caplog.text
