"""What a request records of a real repository: the commit at that time, which a later push does not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from konverge.clock import SystemClock
from konverge_resolution import Digest, Services
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.workspaces import TemporaryFolders
from tests.resolution.fake_resolver import BOX
from tests.resolution.git.sample_repositories import Loopback, Secrets
from tests.resolution.requests.request_namespace import EMBEDDED, RequestNamespace, decode_data
from tests.resolution.servers.git import git, git_server

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]

NEWER = BOX.replace(b"name: a", b"name: b")


def commit(work: Path, content: bytes) -> str:
    (work / "box.yaml").write_bytes(content)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "change", folder=work)
    return git("rev-parse", "HEAD", folder=work)


@pytest.mark.slow
@EMBEDDED
async def test_a_push_is_all_that_publishing_takes_and_the_earlier_record_stays(
    desk: RequestNamespace, tmp_path: Path
) -> None:
    work, root = tmp_path / "work", tmp_path / "served"
    work.mkdir()
    git("init", "--quiet", folder=work)
    first = commit(work, BOX)
    git("clone", "--quiet", "--bare", str(work), str(root / "boxes.git"), folder=tmp_path)
    folders = TemporaryFolders(SystemClock(), tmp_path / "fetched")

    def services_for(requester: Requester, admission: PolicyDecision) -> Services:
        nothing: Any = None
        return Services(nothing, Secrets(), folders, SystemClock(), addresses=Loopback())

    with git_server(root) as server:
        params = {"url": server.url("boxes.git"), "revision": "main", "pathInRepo": "box.yaml"}
        async with desk.running_resolvers(GitResolver(), services_for=services_for):
            await desk.create_request("before", "git", params=params)
            before = (await desk.wait_until_ended("before"))["status"]
            second = commit(work, NEWER)
            git("push", "--quiet", str(root / "boxes.git"), "main", folder=work)
            await desk.create_request("after", "git", params=params)
            after = await desk.wait_until_ended("after")
            assert (await desk.get("before"))["status"] == before

    uri = f"git+{params['url']}"
    assert before["source"] == {"uri": uri, "digest": {"sha1": first}, "entryPoint": "box.yaml"}
    assert after["status"]["source"] == {"uri": uri, "digest": {"sha1": second}, "entryPoint": "box.yaml"}
    assert (before["dataDigest"], decode_data(after)) == (str(Digest.of(BOX)), NEWER)
