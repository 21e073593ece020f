"""What is seen of git while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

import pytest

from konverge_resolution._internal.fetch_progress import FetchProgress
from tests.resolution.git.sample_repositories import BOX, build_fetch, resolve
from tests.resolution.servers.git import git, git_server

pytestmark = pytest.mark.anyio


@dataclass
class Watcher:
    """Notes what it is told."""

    phases: list[str] = field(default_factory=list)
    count: int = 0

    def on_phase(self, phase: str, host: str) -> None:
        self.phases.append(f"{phase} {host}")

    def on_bytes(self, count: int) -> None:
        assert count > 0
        self.count += count

    def on_retry(self, reason: str, seconds: float) -> None:
        raise AssertionError(reason)


async def test_a_user_sees_the_phases_and_the_bytes_of_git(folder: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "box.yaml").write_text(BOX)
    (work / "large").write_bytes(b"".join(sha256(b"%d" % number).digest() for number in range(1 << 15)))
    git("init", "--quiet", folder=work)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)  # without filters: the whole commit is sent
    watcher = Watcher()
    with git_server(tmp_path) as server:
        fetch = build_fetch(folder, {"url": server.url("work/.git"), "pathInRepo": "box.yaml"})
        services = replace(fetch.services, progress=FetchProgress(watcher))
        assert (await resolve(replace(fetch, services=services))).data == BOX.encode()
        host = server.url("").rstrip("/")
    phases = ["resolving the name of", "listing references of", "resolving the name of", "fetching a commit from"]
    phases += ["fetching a file from", "listing directories of"]
    assert watcher.phases == [f"{phase} {host}" for phase in phases]
    assert 1 << 20 <= watcher.count < 3 << 20
