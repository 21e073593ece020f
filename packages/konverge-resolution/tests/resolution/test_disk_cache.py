"""The cache on disk: what one process has fetched another one reads, and whatever the folder contains does no harm."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from konverge.clock import SeededEntropy, SystemClock
from konverge_resolution import (
    AttachedSignature,
    Digest,
    FetchRequest,
    Provenance,
    Reason,
    ResolutionError,
    ResolvedContent,
)
from konverge_resolution._internal.content_cache import CacheKey, build_cache_key
from konverge_resolution._internal.disk_cache import DiskCache
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.reference import Reference
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.fake_source import WEB, build_services

pytestmark = pytest.mark.anyio

CLOCK = SystemClock()
CONTENT = ResolvedContent(
    BOX,
    Provenance("git+https://a.example/b", {"sha1": "c" * 40}, "box.yaml"),
    annotations={"revision": "c" * 40},
    pinned={"url": "https://a.example/b", "list": ["a"], "map": {"a": "b"}},
    attached=(AttachedSignature("application/x", b"\xff\x00", "sha256:1", "c2ln"),),
    found_at="git+https://a.example/c",
    found_params={"pathInRepo": "real.yaml"},
)


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "asyncio", {}  # threads read and write the files


def key(name: str = "a", tenant: str = "web/") -> CacheKey:
    return build_cache_key("git", {"name": name}, {}, tenant=tenant)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "caches" / "definitions"


def cache_in(folder: Path, **more: object) -> DiskCache:
    """The cache as another process has it."""
    return DiskCache(folder, CLOCK, **more)  # type: ignore[arg-type]  # limits of several types


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "lock")


async def test_what_one_process_stored_another_reads_with_all_that_belongs_to_it(folder: Path) -> None:
    assert await cache_in(folder).get(key()) is None
    await cache_in(folder).store(key(), CONTENT)
    assert await cache_in(folder).get(key()) == CONTENT
    for other in (key("b"), key(tenant="other/"), build_cache_key("git", {"name": "a"}, {"s": "x"}, tenant="web/")):
        assert await cache_in(folder).get(other) is None


async def test_only_its_user_can_read_it(folder: Path) -> None:
    await cache_in(folder).store(key(), CONTENT)
    assert {path.stat().st_mode & 0o077 for path in (folder, *files_in(folder))} == {0}
    assert b"a.example" not in b"".join(os.fsencode(path) for path in files_in(folder))


async def test_equal_content_is_stored_once(folder: Path) -> None:
    for name in "abc":
        await cache_in(folder).store(key(name), CONTENT)
    assert len(files_in(folder / "content")) == 1
    assert len(files_in(folder / "records")) == 3


def overwrite(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def enlarge(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(3 << 20)


@pytest.mark.parametrize("damage", [overwrite, empty, enlarge])
@pytest.mark.parametrize("part", ["records", "content"])
async def test_what_is_damaged_is_removed_and_told(
    folder: Path, part: str, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    await cache_in(folder).store(key(), CONTENT)
    (path,) = files_in(folder / part)
    damage(path)
    assert await cache_in(folder).get(key()) is None
    assert "removed an entry, because its" in caplog.text
    assert not path.exists()
    await cache_in(folder).store(key(), CONTENT)
    assert await cache_in(folder).get(key()) == CONTENT


@pytest.mark.parametrize("part", ["records", "content"])
async def test_a_link_or_a_pipe_in_its_place_is_not_read(
    folder: Path, tmp_path: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    await cache_in(folder).store(key(), CONTENT)
    (path,) = files_in(folder / part)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert await cache_in(folder).get(key()) is None
    path.unlink()
    os.mkfifo(path)
    assert await cache_in(folder).get(key()) is None
    assert caplog.text.count("not used: ") == 2


async def test_content_without_a_record_and_a_record_without_content_are_nothing(folder: Path) -> None:
    await cache_in(folder).store(key(), CONTENT)
    files_in(folder / "content")[0].unlink()
    assert await cache_in(folder).get(key()) is None
    assert files_in(folder) == []


@pytest.mark.parametrize("days", [-1, 31])
async def test_an_entry_has_its_time_and_none_is_from_the_future(folder: Path, days: int) -> None:
    class Shifted(SystemClock):
        def now(self) -> datetime:
            return super().now() + timedelta(days=days)

    await cache_in(folder).store(key(), CONTENT)
    assert await DiskCache(folder, Shifted()).get(key()) is None


def other_user(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o777)


def linked(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    (folder.parent / "real").mkdir()
    folder.symlink_to(folder.parent / "real")


def file(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("")


def file_above(folder: Path) -> None:
    folder.parent.write_text("")


@pytest.mark.parametrize("prepare", [other_user, linked, file, file_above])
async def test_a_folder_that_cannot_be_trusted_or_used_is_left_alone_with_one_warning(
    folder: Path, prepare: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    prepare(folder)
    cache = cache_in(folder)
    for _ in range(3):
        await cache.store(key(), CONTENT)
        assert await cache.get(key()) is None
    assert len(caplog.records) == 1
    assert "not used: " in caplog.text
    assert files_in(folder) == []


async def test_a_full_disk_costs_the_cache_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(path: Path, data: bytes, *, mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("konverge_resolution._internal.disk_cache.replace_file", fail)
    engine = engine_of(FakeResolver(), folder)
    for version in ("7", "8"):
        assert (await engine.resolve(reference(version), WEB)).resolved.data == BOX
    assert caplog.messages == [f"cache {folder}: not used: No space left on device"]


async def test_the_folder_is_bounded_and_what_was_used_last_stays(folder: Path) -> None:
    def content(name: str) -> ResolvedContent:
        return ResolvedContent(name.encode() * 1000, Provenance("https://a.example", {}))

    for number, name in enumerate("abcd"):
        await cache_in(folder).store(key(name), content(name))
        for path in files_in(folder):
            times = path.stat().st_mtime_ns
            os.utime(path, ns=(times, times - (100 - number) * 10**9 if times > 10**18 else times))
    assert await cache_in(folder).get(key("a")) is not None
    small = cache_in(folder, max_bytes=2500)
    await small.store(key("e"), content("e"))
    await small.store(key("f"), content("f"))
    kept = [name for name in "abcdef" if await cache_in(folder).get(key(name)) is not None]
    assert kept[0] == "a"
    assert kept[-2:] == ["e", "f"]
    assert len(kept) <= 4
    few = cache_in(folder, max_files=1)
    await few.store(key("g"), content("g"))
    assert len(files_in(folder / "content")) <= 2


@pytest.mark.slow
async def test_who_cannot_get_the_lock_does_not_store_and_does_not_wait_for_ever(folder: Path) -> None:
    await cache_in(folder).store(key(), CONTENT)
    with (folder / "lock").open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = CLOCK.monotonic()
        await cache_in(folder).store(key("b"), CONTENT)
        assert 2 <= CLOCK.monotonic() - before < 3
        assert await cache_in(folder).get(key()) == CONTENT
    assert await cache_in(folder).get(key("b")) is None


WRITER = """
import asyncio, sys
from pathlib import Path
from konverge.clock import SystemClock
from konverge_resolution import Provenance, ResolvedContent
from konverge_resolution._internal.content_cache import build_cache_key
from konverge_resolution._internal.disk_cache import DiskCache
async def main(folder, name):
    for number in range(1000):
        cache = DiskCache(Path(folder), SystemClock(), max_bytes=200_000)
        data = f"{name} {number % 20} ".encode() * 1000
        key = build_cache_key("git", {"name": f"{name}{number % 20}"}, {}, tenant="web/")
        await cache.store(key, ResolvedContent(data, Provenance("https://a.example", {})))
        if number == 5:
            print("begun", flush=True)
asyncio.run(main(*sys.argv[1:]))
"""


def kill_writers(folder: Path, names: str) -> None:
    """Let processes store content at the same time, and kill each while it does."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), name], stdout=subprocess.PIPE) for name in names
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"begun\n"
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=10)


@pytest.mark.slow
async def test_killed_writers_leave_nothing_wrong(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    kill_writers(folder, "xyz")
    (folder / "content" / ".left").write_bytes(b"x")
    cache = cache_in(folder)
    found = {name: await cache.get(key(name)) for name in (f"{writer}{n}" for writer in "xyz" for n in range(20))}
    stored = {name: content.data for name, content in found.items() if content is not None}
    assert len(stored) >= 3
    for name, data in stored.items():
        assert data == f"{name[0]} {name[1:]} ".encode() * 1000
    assert caplog.messages == []
    await cache.store(key(), CONTENT)
    assert [path.name for path in files_in(folder) if path.name.startswith(".")] == []


# The engine.


def engine_of(shelf: FakeResolver, folder: Path) -> Engine:
    registry, cache = ResolverRegistry.of([shelf]), DiskCache(folder, CLOCK)
    return Engine(registry, build_services, clock=CLOCK, entropy=SeededEntropy(), disk_cache=cache)


def reference(version: str = "7", **params: str) -> Reference:
    return Reference("shelf", {"url": "https://a.example/box", "version": version, **params})


async def test_another_process_fetches_nothing_that_has_a_permanent_name(folder: Path) -> None:
    shelf = FakeResolver()
    first = await engine_of(shelf, folder).resolve(reference(), WEB)
    second = await engine_of(shelf, folder).resolve(reference(), WEB)
    assert (first.fetched_from, second.fetched_from, second.attempts) == ("remote", "cache", 0)
    assert second.resolved == first.resolved
    assert [call for call, _ in shelf.calls] == ["7"]


async def test_a_branch_is_looked_up_each_time_and_its_content_only_when_it_has_moved(folder: Path) -> None:
    shelf = FakeResolver(latest="7")
    for _ in range(2):
        await engine_of(shelf, folder).resolve(reference("main"), WEB)
    assert [call for call, _ in shelf.calls] == ["pin", "7", "pin"]
    shelf.latest = "8"
    await engine_of(shelf, folder).resolve(reference("main"), WEB)
    assert [call for call, _ in shelf.calls[3:]] == ["pin", "8"]


@pytest.mark.parametrize(("version", "more"), [("7", {"cache": "never"}), ("main", {"cache": "always"}), ("main", {})])
async def test_what_is_not_to_be_kept_or_has_no_permanent_name_is_not_on_disk(
    folder: Path, version: str, more: dict[str, str]
) -> None:
    shelf = FakeResolver()
    for _ in range(2):
        await engine_of(shelf, folder).resolve(reference(version, **more), WEB)
    assert len(shelf.calls) == 2
    assert files_in(folder) == []


async def test_a_failure_is_not_stored_and_tenants_share_nothing(folder: Path) -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if calls == 1:
            raise ResolutionError(Reason.NOT_FOUND, "not yet")
        return BOX

    shelf = FakeResolver(answer)
    with pytest.raises(ResolutionError, match="not yet"):
        await engine_of(shelf, folder).resolve(reference(), WEB)
    for requester in (WEB, Requester("other"), Requester("web", "somebody")):
        assert (await engine_of(shelf, folder).resolve(reference(), requester)).fetched_from == "remote"


async def test_content_from_disk_is_checked_like_content_from_its_source(folder: Path) -> None:
    for shelf in (FakeResolver(lambda fetch, calls: b"text"), FakeResolver()):
        with pytest.raises(ResolutionError, match="the content is not a definition"):
            await engine_of(shelf, folder).resolve(reference(), WEB)
    wrong = Reference("shelf", {"url": "https://a.example/box", "version": "8"}, Digest.of(b"other"))
    for shelf in (FakeResolver(), FakeResolver()):
        with pytest.raises(ResolutionError, match="does not match its digest"):
            await engine_of(shelf, folder).resolve(wrong, WEB)


@pytest.fixture(autouse=True)
def _messages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "konverge.resolution")
