"""The cost of a hostile git server: memory of this process and of git, disk space, and the time until the abort.

Each attack runs once, with a server that generates its packs while it sends them. Every few milliseconds the bench
samples the memory of the processes in the resolver's folder, the largest and the sum, and the size of the folder. All
sizes are in MB.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, repeat
from pathlib import Path

from bench.resolution_http import resident_bytes
from konverge_resolution import FetchRequest, ResolutionError, ResolvedContent
from konverge_resolution._internal.resolvers.git import GitResolver
from tests.resolution.git.sample_repositories import build_fetch
from tests.resolution.servers.git_packs import (
    BLOB,
    COMMIT,
    TREE,
    HostileRepository,
    build_lazy_repository,
    commit,
    delta,
    encode_object,
    object_id,
    pack,
    pack_server,
    tree,
)

_MEGABYTE = 1 << 20
_LOOK_SECONDS = 0.01
_GIVEN_UP_SECONDS = 60
_FILE = b"100644"
_FOLDER = b"40000"
_MANY = 1_000_000
_DEEP = 10_000


@dataclass
class _Cost:
    """The maximum of each size in bytes, and the result of the resolver in `outcome`."""

    own: int = 0
    one_child: int = 0
    children: int = 0
    disk: int = 0
    seconds: float = 0
    sent: int = 0
    outcome: str = ""

    def look(self, folder: Path, before: int) -> None:
        self.own = max(self.own, resident_bytes() - before)
        found = _resident_below(folder)
        self.one_child = max([self.one_child, *found])
        self.children = max(self.children, sum(found))
        self.disk = max(self.disk, _on_disk(folder))


def _resident_below(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(str(folder)):
                found.append(int((process / "statm").read_text().split()[1]) * resource.getpagesize())
        except OSError:
            continue  # another user's process, or it has ended
    return found


def _on_disk(folder: Path) -> int:
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += (Path(path) / name).lstat().st_blocks * 512
    return size


async def _attack(hostile: HostileRepository, at_once: int) -> _Cost:
    cost = _Cost()
    resolver = GitResolver()
    with tempfile.TemporaryDirectory(prefix="konverge-bench-") as name, pack_server(hostile):
        folder = Path(name)
        fetch = build_fetch(folder, {"url": hostile.url, "pathInRepo": "box.yaml"})
        before = resident_bytes()
        began = time.perf_counter()
        resolving = [asyncio.create_task(_resolve(resolver, fetch)) for _ in range(at_once)]
        while not all(each.done() for each in resolving):
            await asyncio.wait(resolving, timeout=_LOOK_SECONDS)
            cost.look(folder, before)
            if time.perf_counter() - began > _GIVEN_UP_SECONDS:
                for each in resolving:
                    each.cancel()
        cost.seconds = time.perf_counter() - began
        cost.sent = hostile.bytes_sent
        outcomes = await asyncio.gather(*resolving, return_exceptions=True)
        cost.outcome = _describe_outcome(outcomes[0])
    return cost


def _describe_outcome(outcome: ResolvedContent | BaseException) -> str:
    if isinstance(outcome, ResolvedContent):
        return f"{len(outcome.data)} bytes"
    if isinstance(outcome, ResolutionError):
        return f"{outcome.reason.value}: {outcome.message.partition('.git ')[2] or outcome.message}"
    return "the deadline"


async def _resolve(resolver: GitResolver, fetch: FetchRequest) -> ResolvedContent:
    pinned = await resolver.pin(fetch)
    assert pinned is not None
    return await resolver.resolve(replace(fetch, params=pinned))


def _huge(pieces: Sequence[bytes]) -> HostileRepository:
    return build_lazy_repository(object_id(BLOB, pieces), lambda: pack([encode_object(BLOB, pieces)], 1))


def _zeros() -> HostileRepository:
    return _huge([bytes(_MEGABYTE)] * 1024)


def _noise() -> HostileRepository:
    return _huge([hashlib.shake_256(b"a").digest(_MEGABYTE)] * 1024)


def _references() -> HostileRepository:
    lines = (b"%040x refs/heads/main%0900d\n" % (number + 1, number) for number in count())
    return HostileRepository("0" * 40, [], lambda: lines)


def _progress() -> HostileRepository:
    return HostileRepository("1" * 40, [tuple], progress=lambda: repeat(b"counting objects\n"))


def _endless_file() -> HostileRepository:
    entry = [b"\xb0" + b"\xff" * 4 + b"\x7f"]  # the header of a blob of gigabytes

    def noise() -> Iterator[bytes]:
        yield from entry
        yield b"\x78\x01"
        for number in count():
            data = hashlib.shake_256(b"%d" % (number % 16)).digest(60_000)
            yield b"\0" + len(data).to_bytes(2, "little") + (len(data) ^ 0xFFFF).to_bytes(2, "little") + data

    return HostileRepository("1" * 40, [lambda: pack([noise()], 1)])


def _endless_objects() -> HostileRepository:
    def objects() -> Iterator[bytes]:
        for number in count():
            data = b"%08d" % number
            yield b"".join(encode_object(BLOB, [data]))

    return HostileRepository("1" * 40, [lambda: pack([objects()], 0x7FFFFFFF)])


def _many_objects(number: int = 8_000_000) -> HostileRepository:
    def objects() -> Iterator[bytes]:
        same = b"".join(encode_object(BLOB, [b"a"])) * 1000
        yield from repeat(same, number // 1000)

    return HostileRepository("1" * 40, [lambda: pack([objects()], number)])


def _wide() -> HostileRepository:
    file = object_id(BLOB, [b"a"])
    entries = [(_FILE, b"%07d" % number, file) for number in range(_MANY)]
    root = tree(*entries, (_FILE, b"box.yaml", file))
    root_id = object_id(TREE, [root])
    text = commit(root_id)
    first = [encode_object(COMMIT, [text]), encode_object(TREE, [root])]
    return HostileRepository(
        object_id(COMMIT, [text]), [lambda: pack(first, len(first)), lambda: pack([encode_object(BLOB, [b"a"])], 1)]
    )


def _deep() -> HostileRepository:
    entries: list[Iterable[bytes]] = []
    file = inner = object_id(BLOB, [b"a"])
    mode, name = _FILE, b"box.yaml"
    for _ in range(_DEEP):
        each = tree((mode, name, inner)) if mode == _FILE else tree((_FILE, b"box.yaml", file), (mode, name, inner))
        entries.append(encode_object(TREE, [each]))
        inner, mode, name = object_id(TREE, [each]), _FOLDER, b"d"
    text = commit(inner)
    entries.append(encode_object(COMMIT, [text]))
    return HostileRepository(
        object_id(COMMIT, [text]), [lambda: pack(entries, len(entries)), lambda: pack([encode_object(BLOB, [b"a"])], 1)]
    )


def _large_tree() -> HostileRepository:
    pieces = [bytes(_MEGABYTE)] * 1024
    text = commit(object_id(TREE, pieces))
    return HostileRepository(
        object_id(COMMIT, [text]), [lambda: pack([encode_object(COMMIT, [text]), encode_object(TREE, pieces)], 2)]
    )


def _large_commit() -> HostileRepository:
    return HostileRepository("1" * 40, [lambda: pack([encode_object(COMMIT, [bytes(_MEGABYTE)] * 1024)], 1)])


def _inflating(copies: int, times: int) -> HostileRepository:
    """Return deltas that repeat a file of 15 MB."""
    base = [bytes(15 << 20)]
    file = object_id(BLOB, base)
    large = object_id(BLOB, base * copies)
    made = [delta(file, 15 << 20, copies - number % 2) for number in range(times)]
    entries = [encode_object(BLOB, base), *([each] for each in made)]
    return build_lazy_repository(large, lambda: pack(entries, len(entries)))


_ATTACKS: Sequence[tuple[str, Callable[[], HostileRepository], int]] = (
    ("a file of 1 GB of zeros", _zeros, 1),
    ("a file of 1 GB that cannot be packed", _noise, 1),
    ("references without end", _references, 1),
    ("progress without end", _progress, 1),
    ("a pack without end: one file", _endless_file, 1),
    ("a pack without end: small files", _endless_objects, 1),
    ("a pack of 8,000,000 times the same", _many_objects, 1),
    ("the same, four at once", _many_objects, 4),
    ("a folder of 1,000,000 files", _wide, 1),
    ("10,000 folders in each other", _deep, 1),
    ("a folder's list of 1 GB", _large_tree, 1),
    ("a commit of 1 GB", _large_commit, 1),
    ("a delta that makes 15 MB to 2 GB", lambda: _inflating(136, 1), 1),
    ("200 deltas that make 15 MB to 300 MB", lambda: _inflating(20, 200), 1),
)


def measure() -> Iterator[str]:
    """Run the attacks; yield a line for each."""
    yield f"{'a hostile git server':40} {'sent':>8} {'we':>7} {'a child':>8} {'all':>7} {'disk':>7} {'s':>6}"
    for name, make, at_once in _ATTACKS:
        cost = asyncio.run(_attack(make(), at_once))
        figures = [cost.sent, cost.own, cost.one_child, cost.children, cost.disk]
        sent, own, child, children, disk = (each / 1e6 for each in figures)
        yield (
            f"{name:40} {sent:8.1f} {own:7.1f} {child:8.1f} {children:7.1f} {disk:7.1f} {cost.seconds:6.2f}  "
            f"{cost.outcome}"
        )
