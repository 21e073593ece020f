"""What a server can send to take what we have: memory, disk, time. What the real sizes take is measured in `bench`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SystemClock
from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.git.failures import parse_failure
from konverge_resolution._internal.resolvers.git.memory_watcher import MemoryWatcher, measure_memory
from konverge_resolution._internal.resolvers.git.process_runner import ProcessLimits, ProcessResult, run_process
from konverge_resolution._internal.usage_limit import SharedUsage
from konverge_resolution._internal.workspaces import TemporaryFolders
from tests.resolution.git.sample_repositories import LIMITS, PATH, build_fetch, list_files, resolve
from tests.resolution.servers.git_packs import (
    BLOB,
    COMMIT,
    TREE,
    HostileRepository,
    build_growing_files,
    build_lazy_repository,
    commit,
    delta,
    encode_object,
    object_id,
    pack,
    pack_server,
    tree,
)

pytestmark = pytest.mark.anyio

SMALL = {"max-memory-bytes": str(32 << 20), "max-repository-bytes": "1000000"}
HOLDS = "import signal, sys; held = bytearray(b'x') * (int(sys.argv[1]) << 20); signal.pause()"


async def expect_resolution_error(hostile: HostileRepository, folder: Path) -> ResolutionError:
    with pack_server(hostile), pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, {"url": hostile.url, "pathInRepo": "box.yaml"}, settings=SMALL))
    assert list_files(folder) == ["lock"]
    return caught.value


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_small_delta_that_makes_a_large_file_meets_the_limit_of_memory(folder: Path) -> None:
    entries, of_all = build_growing_files(1 << 20, 64)
    error = await expect_resolution_error(HostileRepository(of_all, [lambda: pack(entries, len(entries))]), folder)
    assert (error.reason, "memory to unpack" in error.message) == (Reason.TOO_LARGE, True)


async def test_a_file_that_is_too_much_to_unpack_is_not_called_too_large_a_definition(folder: Path) -> None:
    base = [bytes(1 << 20)]
    entries = [encode_object(BLOB, base), [delta(object_id(BLOB, base), 1 << 20, 64)]]
    error = await expect_resolution_error(
        build_lazy_repository(object_id(BLOB, base * 64), lambda: pack(entries, 2)), folder
    )
    assert (error.reason, "memory to unpack" in error.message) == (Reason.TOO_LARGE, True)


async def test_the_list_of_a_folder_that_is_packed_zeros_meets_the_limit_of_memory(folder: Path) -> None:
    zeros = [bytes(64 << 20)]
    text = commit(object_id(TREE, zeros))
    answer = [encode_object(COMMIT, [text]), encode_object(TREE, zeros)]
    error = await expect_resolution_error(
        HostileRepository(object_id(COMMIT, [text]), [lambda: pack(answer, 2)]), folder
    )
    assert (error.reason, "memory to unpack" in error.message) == (Reason.TOO_LARGE, True)


async def test_a_pack_without_end_meets_the_limit_of_the_repository(folder: Path) -> None:
    def noise() -> Iterator[bytes]:
        yield b"\xb0\xff\xff\xff\xff\x7f\x78\x01"  # the head of a file of gigabytes, which is not packed
        yield from repeat(b"\0\x10\x27\xef\xd8" + bytes(10_000))

    error = await expect_resolution_error(HostileRepository("1" * 40, [lambda: pack([noise()], 1)]), folder)
    assert (error.reason, "max-repository-bytes" in error.message) == (Reason.TOO_LARGE, True)


async def test_progress_without_end_is_ended(folder: Path) -> None:
    error = await expect_resolution_error(
        HostileRepository("1" * 40, [tuple], progress=lambda: repeat(b"counting\n" * 100)), folder
    )
    assert (error.reason, "sends more output" in error.message) == (Reason.TOO_LARGE, True)


async def test_other_objects_than_were_asked_for_are_no_answer(folder: Path) -> None:
    error = await expect_resolution_error(
        HostileRepository("1" * 40, [lambda: pack([encode_object(BLOB, [b"a"])], 1)]), folder
    )
    assert (error.reason, "does not send the requested objects" in error.message) == (Reason.UNREACHABLE, True)


async def test_folders_deep_in_each_other_and_a_wide_one_do_no_harm(folder: Path) -> None:
    file = object_id(BLOB, [b"kind: A\n"])
    inner, entries = tree(*((b"100644", b"%06d" % number, file) for number in range(10_000))), []
    for _ in range(1_000):
        entries.append(encode_object(TREE, [inner]))
        inner = tree((b"100644", b"box.yaml", file), (b"40000", b"d", object_id(TREE, [inner])))
    text = commit(object_id(TREE, [inner]))
    entries += [encode_object(TREE, [inner]), encode_object(COMMIT, [text])]
    answers = [lambda: pack(entries, len(entries)), lambda: pack([encode_object(BLOB, [b"kind: A\n"])], 1)]
    with pack_server(HostileRepository(object_id(COMMIT, [text]), answers)) as hostile:
        resolved = await resolve(build_fetch(folder, {"url": hostile.url, "pathInRepo": "box.yaml"}, settings=SMALL))
    assert resolved.data == b"kind: A\n"


@pytest.mark.slow
async def test_several_fetches_share_the_memory_that_git_may_have(folder: Path) -> None:
    ending, resolver = threading.Event(), GitResolver()

    def references() -> Iterator[bytes]:
        yield from (b"%040x refs/heads/%d\n" % (number + 1, number) for number in range(100_000))
        ending.wait()  # none of them is too large by itself

    with pack_server(HostileRepository("1" * 40, [], references)) as hostile:
        params = {"url": hostile.url, "pathInRepo": "box.yaml"}
        fetch = build_fetch(folder, params, settings={"max-memory-bytes": str(40 << 20)})
        asked = [asyncio.create_task(resolver.pin(fetch)) for _ in range(3)]
        async with asyncio.timeout(10):
            (first, *_), others = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert "uses the most memory while all git processes exceed their limit" in str(first.exception())
        assert others
        for each in others:
            await cancel_and_wait(each)
        ending.set()


@pytest.mark.slow
async def test_of_what_takes_too_much_memory_together_the_largest_is_ended(tmp_path: Path) -> None:
    memory = MemoryWatcher()
    watched = partial(memory.wait_until_exceeded, max_bytes=60 << 20)

    async def holding(megabytes: int) -> ProcessResult:
        program = [sys.executable, "-c", HOLDS, str(megabytes)]
        return await run_process(program, environment=PATH, folder=tmp_path, limits=LIMITS, wait_until_exceeded=watched)

    small, large = (asyncio.create_task(holding(megabytes)) for megabytes in (10, 80))
    async with asyncio.timeout(10):
        assert (await large).is_out_of_memory
        assert (await holding(70)).is_out_of_memory  # the one before it has ended, and counts no more
    assert not small.done()
    await cancel_and_wait(small)


@pytest.mark.slow
async def test_a_program_that_computes_without_end_is_ended(tmp_path: Path) -> None:
    limits = ProcessLimits(memory_bytes=1 << 30, file_bytes=1 << 20, output_bytes=1 << 16, cpu_seconds=1)
    finished = await run_process(["sh", "-c", "while :; do :; done"], environment=PATH, folder=tmp_path, limits=limits)
    assert finished.status == -signal.SIGXCPU
    error = parse_failure(finished.errors, uri="git+http://git.test", has_credential=False, status=finished.status)
    assert (error.reason, "more time or memory to unpack" in error.message) == (Reason.TOO_LARGE, True)


@pytest.mark.slow
async def test_of_what_takes_too_much_disk_together_the_largest_is_ended(folder: Path) -> None:
    folders = TemporaryFolders(SystemClock(), folder, max_bytes=3 << 20)

    async def holding(bytes_: int) -> None:
        async with folders.folder(max_bytes=8 << 20) as mine, asyncio.timeout(10):
            (mine / "file").write_bytes(b"x" * bytes_)
            await asyncio.Event().wait()

    small = asyncio.create_task(holding(1 << 20))
    with pytest.raises(ResolutionError) as caught:
        await holding(4 << 20)
    assert (caught.value.reason, "for all concurrent fetches" in caught.value.message) == (Reason.TOO_LARGE, True)
    assert not small.done()
    await cancel_and_wait(small)


def test_only_whoever_holds_most_gives_up_and_only_when_it_is_too_much() -> None:
    shared: SharedUsage[str] = SharedUsage()
    assert not shared.record_and_check("a", 6, max_bytes=10)
    assert not shared.record_and_check("b", 4, max_bytes=10)
    assert not shared.record_and_check("b", 5, max_bytes=10)
    assert shared.record_and_check("a", 6, max_bytes=10)
    shared.release("a")
    assert not shared.record_and_check("b", 10, max_bytes=10)


def test_what_a_process_holds_counts_what_it_has_started() -> None:
    assert measure_memory(os.getpid()) > 10 << 20
    assert measure_memory(0) == 0
