"""The time for one deep file of a repository of 110 MB: cold, again by name, and pinned; and the transferred bytes.

The peer is `git clone --depth 1` in the same run from the same server: ``git http-backend`` on loopback. The resolver
runs through the engine, as for a request. The values are medians of several runs in turn.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from konverge.clock import SystemClock, SystemEntropy
from konverge_resolution import Reference, Services
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.workspaces import TemporaryFolders
from tests.resolution.git.sample_repositories import BOX, Loopback
from tests.resolution.servers.git import GitServer, git, git_server

_MEGABYTE = 1_000_000
_LARGE_FILES = 110
_SMALL_FILES = 3_000
_RUNS = 7
_PATH = "team/7/boxes/7/box.yaml"


def _make(root: Path) -> str:
    work = root / "work"
    work.mkdir()
    git("init", "--quiet", folder=work)
    git("config", "core.compression", "0", folder=work)
    for number in range(_LARGE_FILES):
        (work / f"large{number}").write_bytes(hashlib.shake_256(b"%d" % number).digest(_MEGABYTE))
    for number in range(_SMALL_FILES):
        path = work / f"team/{number % 50}/boxes/{number}/box.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(BOX if number == 7 else f"number: {number}\n")
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("-c", "pack.window=0", "clone", "--quiet", "--bare", str(work), str(root / "large.git"), folder=root)
    git("-c", "pack.window=0", "repack", "-adq", folder=root / "large.git")
    git("config", "uploadpack.allowFilter", "true", folder=root / "large.git")
    commit = git("rev-parse", "HEAD", folder=work)
    shutil.rmtree(work)
    git("clone", "--quiet", "--bare", str(root / "large.git"), str(root / "strict.git"), folder=root)
    return commit


class GitMeasurements:
    """The durations of each way, and the requests and bytes of its last run."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.moved: dict[str, tuple[int, int]] = {}

    def line(self, name: str, goal: str) -> str:
        requests, moved = self.moved[name]
        took = statistics.median(self.seconds[name])
        return f"{name:44} {took * 1000:9.1f} ms  {moved:>11,} bytes  {requests} requests  {goal}"


async def _resolve(engine: Engine, server: GitServer, repository: str, revision: str) -> None:
    params = {"url": server.url(repository), "revision": revision, "pathInRepo": _PATH}
    outcome = await engine.resolve(Reference("git", params), Requester("web"))
    assert outcome.resolved.data == BOX.encode()


def _clone(server: GitServer, root: Path) -> None:
    url = server.url("large.git", host="127.0.0.1")
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", url, str(root / "clone")], check=True)
    assert (root / "clone" / _PATH).read_text() == BOX
    shutil.rmtree(root / "clone")


async def _measure_resolutions(root: Path, server: GitServer, commit: str) -> GitMeasurements:
    figures = GitMeasurements()
    folders = TemporaryFolders(SystemClock(), root / "folders")

    def services(requester: Requester, admission: PolicyDecision) -> Services:
        nothing: Any = None
        return Services(nothing, nothing, folders, SystemClock(), addresses=Loopback())

    async def measure_time(name: str, work: Awaitable[None]) -> None:
        server.reset_counters()
        start = time.perf_counter()
        await work
        figures.seconds.setdefault(name, []).append(time.perf_counter() - start)
        figures.moved[name] = len(server.seen), server.bytes_sent

    for _ in range(_RUNS):
        engine = Engine(ResolverRegistry.of([GitResolver()]), services, clock=SystemClock(), entropy=SystemEntropy())
        await measure_time("commit, cold", _resolve(engine, server, "large.git", commit))
        await measure_time("commit, again", _resolve(engine, server, "large.git", commit))
        await measure_time("branch, its commit known", _resolve(engine, server, "large.git", "main"))
        other = Engine(ResolverRegistry.of([GitResolver()]), services, clock=SystemClock(), entropy=SystemEntropy())
        await measure_time("branch, cold", _resolve(other, server, "large.git", "main"))
        await measure_time("commit, cold, the server does not filter", _resolve(other, server, "strict.git", commit))
        await measure_time("git clone --depth 1", asyncio.to_thread(_clone, server, root))
    folders.close()
    return figures


@cache
def measure_once() -> GitMeasurements:
    """Run the measurement once per process: `bench.resolution` uses the same results."""
    with tempfile.TemporaryDirectory(prefix="konverge-bench-git-") as name:
        root = Path(name)
        commit = _make(root)
        with git_server(root) as server:
            return asyncio.run(_measure_resolutions(root, server, commit))


def measure() -> Iterator[str]:
    """Yield a line for each way."""
    found = measure_once()
    goals = {
        "commit, cold": "goal: 300 ms, 1,000,000 bytes",
        "commit, again": "goal: 5 ms, no request",
        "branch, its commit known": "goal: one ls-remote (2 requests)",
    }
    yield f"one file of a repository of {_LARGE_FILES} MB, medians of {_RUNS}"
    for each in found.seconds:
        yield "  " + found.line(each, goals.get(each, ""))
