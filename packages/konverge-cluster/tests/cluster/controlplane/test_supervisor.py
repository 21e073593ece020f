"""The supervisor ends its processes, in whatever order the processes end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from konverge.clock import SystemClock
from konverge_cluster._internal.controlplane import supervisor
from konverge_cluster.testing import eventually
from tests.cluster.controlplane.processes import is_running

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
# Prints its process id, and then waits for longer than any test.
WAITING = ["sh", "-c", "echo $$; exec sleep 600"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Supervised:
    """A supervisor with its standard input, and a folder that it removes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "removed"
        self.logs = folder
        self.folder.mkdir()
        self.process = subprocess.Popen(
            [sys.executable, "-I", supervisor.__file__, str(self.folder)], stdin=subprocess.PIPE
        )

    async def start(self, name: str, command: list[str]) -> int:
        """Start a process that prints its id."""
        assert self.process.stdin is not None
        log = self.logs / f"{name}.log"
        self.process.stdin.write(json.dumps({"name": name, "command": command, "log": str(log)}).encode() + b"\n")
        self.process.stdin.flush()
        printed = await eventually(lambda: log.exists() and log.read_text().strip(), clock=CLOCK)
        return int(str(printed))

    def kill(self, name: str) -> None:
        """Kill a process if it still runs."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"kill": name}).encode() + b"\n")
        self.process.stdin.flush()

    def let_go(self) -> int:
        """Close standard input; return the supervisor's exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(10)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    running = Supervised(tmp_path)
    yield running
    running.let_go()


async def test_letting_go_ends_every_process_and_removes_the_folder(supervised: Supervised) -> None:
    first = await supervised.start("first", WAITING)
    second = await supervised.start("second", WAITING)

    exit_code = supervised.let_go()

    assert exit_code == 0
    assert not is_running(first)
    assert not is_running(second)
    assert not supervised.folder.exists()


async def test_what_a_process_started_itself_ends_with_it(supervised: Supervised) -> None:
    grandchild = await supervised.start("parent", ["sh", "-c", "sleep 600 & echo $!; wait"])

    supervised.let_go()

    await eventually(lambda: not is_running(grandchild), clock=CLOCK, describe="the grandchild is gone")


async def test_a_process_that_ends_by_itself_leaves_its_exit_code(supervised: Supervised) -> None:
    await supervised.start("short", ["sh", "-c", "echo 1; exit 7"])

    note = supervised.folder / "short.exit"
    await eventually(note.exists, clock=CLOCK)
    assert note.read_text() == "7"


async def test_one_process_can_be_killed_and_started_again(supervised: Supervised) -> None:
    other = await supervised.start("other", WAITING)
    first = await supervised.start("first", WAITING)

    supervised.kill("first")
    note = supervised.folder / "first.exit"
    await eventually(note.exists, clock=CLOCK)
    supervised.kill("first")  # the process has ended: nothing happens
    (supervised.logs / "first.log").unlink()
    second = await supervised.start("first", WAITING)

    assert note.read_text() == "-9"
    assert not is_running(first)
    assert is_running(second)
    assert is_running(other)


async def test_a_terminated_supervisor_cleans_up(supervised: Supervised) -> None:
    child = await supervised.start("child", WAITING)

    supervised.process.terminate()
    supervised.process.wait(10)

    assert not is_running(child)
    assert not supervised.folder.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can end a process with its parent")
async def test_a_killed_supervisor_takes_its_processes_along(supervised: Supervised) -> None:
    child = await supervised.start("child", WAITING)

    supervised.process.kill()
    supervised.process.wait(10)

    await eventually(lambda: not is_running(child), clock=CLOCK, describe="the child is gone")
