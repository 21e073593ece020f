"""What is left of a fetch: of one that is cancelled, of one that gets too much, of a process that is killed."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SystemClock
from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolvers.git import repository
from konverge_resolution._internal.resolvers.git.process_runner import run_process
from konverge_resolution._internal.workspaces import TemporaryFolders
from tests.cancellation_leaks import cancel_again, find_leaks_of_each, run_loop_turns
from tests.resolution.git.sample_repositories import LIMITS, PATH, build_fetch, list_files, list_processes, resolve
from tests.resolution.servers.git import GitServer
from tests.resolution.servers.git_faults import FaultServer, fault_server

pytestmark = pytest.mark.anyio

KILLED = """
import asyncio, sys
from pathlib import Path
from tests.resolution.git.sample_repositories import build_fetch, resolve
asyncio.run(resolve(build_fetch(Path(sys.argv[1]), {"url": sys.argv[2], "pathInRepo": "box.yaml"})))
"""


@pytest.fixture(scope="session")
def shared_faults() -> Iterator[FaultServer]:
    with fault_server() as server:
        yield server


@pytest.fixture
def faults(shared_faults: FaultServer) -> FaultServer:
    shared_faults.asked.clear()
    return shared_faults


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await SystemClock().sleep(0.01)


@pytest.mark.parametrize("fault", ["hang", "drip"])
async def test_a_fetch_that_is_cancelled_leaves_no_process_and_no_file(
    faults: FaultServer, folder: Path, fault: str
) -> None:
    fetching = asyncio.create_task(resolve(build_fetch(folder, {"url": faults.url(fault), "pathInRepo": "box.yaml"})))
    await until(faults.asked.is_set)
    running = list_processes(folder)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    assert any("remote-http" in command for command in running)
    assert list_processes(folder) == []
    assert list_files(folder) == ["lock"]


@pytest.mark.slow
async def test_a_process_that_is_killed_leaves_no_git_and_its_folder_to_the_next_start(
    faults: FaultServer, folder: Path
) -> None:
    program = (sys.executable, "-c", KILLED, str(folder), faults.url("hang"))
    resolver = await asyncio.create_subprocess_exec(*program)
    try:
        await until(faults.asked.is_set)
        assert any("remote-http" in command for command in list_processes(folder))
    finally:
        resolver.kill()
        await resolver.wait()
    await until(lambda: not list_processes(folder))
    assert "lock" in list_files(folder)
    TemporaryFolders(SystemClock(), folder).close()
    assert list_files(folder) == []


async def test_the_folder_of_a_process_that_lives_is_left_alone(folder: Path) -> None:
    first = TemporaryFolders(SystemClock(), folder)
    async with first.folder(max_bytes=1 << 20) as mine:
        TemporaryFolders(SystemClock(), folder).close()
        assert mine.exists()
    first.close()


@pytest.mark.slow
async def test_a_folder_that_grows_too_large_ends_what_is_done_in_it(folder: Path) -> None:
    folders = TemporaryFolders(SystemClock(), folder)
    with pytest.raises(ResolutionError) as caught:
        async with folders.folder(max_bytes=1 << 20) as mine:
            await run_process(
                ["sh", "-c", "i=0; while :; do i=$((i+1)); head -c 100000 /dev/zero > $i; done"],
                environment=PATH, folder=mine, limits=LIMITS,
            )  # fmt: skip
    assert caught.value.reason is Reason.TOO_LARGE
    assert list_files(folder) == ["lock"]


async def test_files_that_are_written_while_a_fetch_is_cancelled_go_with_its_folder(
    server: GitServer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on, ended = threading.Event(), threading.Event(), threading.Event()
    make_repository = repository._make_repository

    def slowly(*given: Any) -> None:
        begun.set()
        may_go_on.wait(10)
        make_repository(*given)
        ended.set()

    monkeypatch.setattr(repository, "_make_repository", slowly)
    fetch = build_fetch(folder, {"url": server.url("boxes.git"), "pathInRepo": "box.yaml"})
    fetching = asyncio.create_task(resolve(fetch))
    await asyncio.to_thread(begun.wait, 10)
    await cancel_again(fetching)
    may_go_on.set()
    await asyncio.wait([fetching])
    await asyncio.to_thread(ended.wait, 10)
    assert (fetching.cancelled(), list_files(folder)) == (True, ["lock"])


@pytest.mark.slow
async def test_what_fails_when_its_folder_is_too_large_is_not_taken_for_cancelled_afterwards(folder: Path) -> None:
    folders, task = TemporaryFolders(SystemClock(), folder), asyncio.current_task()
    assert task is not None

    async def fail_when_ended() -> None:
        async with folders.folder(max_bytes=0) as mine:
            (mine / "file").write_text("much")
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                raise ConnectionError

    with pytest.raises(ConnectionError):
        await fail_when_ended()
    assert task.cancelling() == 0


async def test_a_server_that_stops_in_the_middle_is_unreachable(faults: FaultServer, folder: Path) -> None:
    error = await expect_resolution_error(faults, folder, "cut")
    assert error.reason is Reason.UNREACHABLE


async def test_a_page_is_no_repository(faults: FaultServer, folder: Path) -> None:
    error = await expect_resolution_error(faults, folder, "page")
    assert error.reason is Reason.NOT_FOUND


@pytest.mark.slow
async def test_references_without_end_meet_the_limit_of_memory(faults: FaultServer, folder: Path) -> None:
    error = await expect_resolution_error(faults, folder, "endless")
    assert (error.reason, "memory" in error.message) == (Reason.TOO_LARGE, True)


async def expect_resolution_error(faults: FaultServer, folder: Path, fault: str) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, {"url": faults.url(fault), "pathInRepo": "box.yaml"}))
    return caught.value


async def test_a_program_that_prints_too_much_is_ended(tmp_path: Path) -> None:
    finished = await run_process(["yes"], environment=PATH, folder=tmp_path, limits=LIMITS)
    assert (finished.is_truncated, len(finished.output)) == (True, LIMITS.output_bytes)


async def test_what_a_program_leaves_running_ends_with_it(tmp_path: Path) -> None:
    finished = await run_process(
        ["sh", "-c", "sleep 1000 & echo done"], environment=PATH, folder=tmp_path, limits=LIMITS
    )
    assert (finished.output, list_processes(tmp_path)) == (b"done\n", [])


def test_a_program_that_is_cancelled_at_any_moment_and_again_leaves_nothing(tmp_path: Path) -> None:
    async def cancelled_twice(turns: int | None) -> None:
        running = asyncio.create_task(run_process(["sleep", "1000"], environment=PATH, folder=tmp_path, limits=LIMITS))
        if turns is None:
            await until(lambda: "sleep 1000 " in list_processes(tmp_path))
        else:
            await run_loop_turns(turns)
        await cancel_again(running)
        with pytest.raises(asyncio.CancelledError):
            await running
        assert list_processes(tmp_path) == [], f"after {turns} turns"

    assert find_leaks_of_each(cancelled_twice(turns) for turns in (*range(12), None)) == []


async def test_a_program_is_told_that_a_file_is_too_large(tmp_path: Path) -> None:
    finished = await run_process(["sh", "-c", "yes > file"], environment=PATH, folder=tmp_path, limits=LIMITS)
    assert "File too large" in finished.errors
    assert (tmp_path / "file").stat().st_size == LIMITS.file_bytes


async def test_a_machine_without_git_says_so(server: GitServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, {"url": server.url("boxes.git"), "pathInRepo": "box.yaml"}))
    assert (caught.value.reason, "git: expected version 2.37 or newer" in caught.value.message) == (
        Reason.INTERNAL,
        True,
    )


async def test_a_watcher_that_fails_is_not_taken_for_a_program_that_uses_too_much(tmp_path: Path) -> None:
    async def fail(process: int) -> None:
        raise ValueError("the watcher is broken")

    with pytest.raises(ValueError, match="the watcher is broken"):
        await run_process(["sleep", "1000"], environment=PATH, folder=tmp_path, limits=LIMITS, wait_until_exceeded=fail)
    assert list_processes(tmp_path) == []
