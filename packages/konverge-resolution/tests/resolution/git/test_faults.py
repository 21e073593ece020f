"""What servers and repositories have that is not what a reference expects: each ends with one message that says it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.resolvers.git.failures import is_not_git_server, is_refusing_objects, parse_failure
from tests.resolution.git.sample_repositories import SampleRepositories, build_fetch, resolve
from tests.resolution.servers.git import GitServer, git
from tests.resolution.servers.git_faults import FaultServer, fault_server
from tests.resolution.servers.http_server import Handler, http_server

pytestmark = pytest.mark.anyio

URI = "git+http://git.test"
NO_SERVER = "is on a web server without git's protocol; expected the clone address of a git server"


async def expect_resolution_error(folder: Path, params: Mapping[str, str]) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, {"pathInRepo": "box.yaml", **params}))
    return caught.value


@pytest.fixture(scope="session")
def files(samples: SampleRepositories) -> Iterator[str]:
    """The address of a web server that gives out the repositories' files, as ``git update-server-info`` is for."""
    git("clone", "--quiet", "--bare", "boxes.git", "files.git", folder=samples.root)
    git("update-server-info", folder=samples.root / "files.git")

    class Files(Handler, SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(samples.root))

    with http_server(Files) as port:
        yield f"http://git.test:{port}/files.git"


@pytest.fixture(scope="session")
def faults() -> Iterator[FaultServer]:
    with fault_server() as server:
        yield server


@pytest.mark.parametrize("revision", ["main", "HEAD", "1" * 40])
async def test_a_web_server_of_a_repositorys_files_is_told_apart(files: str, folder: Path, revision: str) -> None:
    error = await expect_resolution_error(folder, {"url": files, "revision": revision})
    assert error.reason is Reason.NOT_FOUND
    assert NO_SERVER in error.message


@pytest.mark.parametrize("revision", ["main", "1" * 40])
async def test_a_page_is_told_apart_from_a_repository_without_that_revision(
    faults: FaultServer, folder: Path, revision: str
) -> None:
    error = await expect_resolution_error(folder, {"url": faults.url("page"), "revision": revision})
    assert (error.reason, NO_SERVER in error.message) == (Reason.NOT_FOUND, True)


@pytest.fixture(scope="session")
def odd(samples: SampleRepositories) -> Path:
    """A repository of odd names: tags of a tag, a folder and a file, a tag named as a branch, and no HEAD."""
    git("clone", "--quiet", "--bare", "boxes.git", "odd.git", folder=samples.root)
    made = samples.root / "odd.git"
    git("config", "uploadpack.allowFilter", "true", folder=made)
    git("tag", "-a", "-m", "a", "of-a-tag", "v2", folder=made)
    git("tag", "-a", "-m", "a", "of-a-folder", "v2^{tree}", folder=made)
    git("tag", "of-a-file", "v2:box.yaml", folder=made)
    git("branch", "both", samples.first, folder=made)
    git("tag", "both", samples.commit, folder=made)
    git("symbolic-ref", "HEAD", "refs/heads/unborn", folder=made)
    git("init", "--quiet", "--bare", "empty.git", folder=samples.root)
    return made


@pytest.mark.slow
async def test_the_name_of_a_tag_and_of_a_branch_is_the_tags_and_a_full_one_says_which(
    server: GitServer, samples: SampleRepositories, odd: Path, folder: Path
) -> None:
    found = {}
    for revision in ("both", "refs/heads/both", "of-a-tag"):
        params = {"url": server.url("odd.git"), "revision": revision, "pathInRepo": "box.yaml"}
        found[revision] = (await resolve(build_fetch(folder, params))).source.digest["sha1"]
    assert found == {"both": samples.commit, "refs/heads/both": samples.first, "of-a-tag": samples.commit}


@pytest.mark.parametrize("revision", ["of-a-folder", "of-a-file"])
async def test_a_tag_of_something_else_is_no_commit(server: GitServer, odd: Path, folder: Path, revision: str) -> None:
    error = await expect_resolution_error(folder, {"url": server.url("odd.git"), "revision": revision})
    assert error.reason is Reason.NOT_FOUND
    assert error.message.startswith("parameter 'revision': expected a commit, or a tag of one; ")


@pytest.mark.parametrize(("repo", "revision"), [("odd.git", "HEAD"), ("empty.git", "HEAD"), ("empty.git", "main")])
async def test_a_repository_without_that_branch_is_no_page(
    server: GitServer, odd: Path, folder: Path, repo: str, revision: str
) -> None:
    error = await expect_resolution_error(folder, {"url": server.url(repo), "revision": revision})
    message = f"parameter 'revision': repository git+{server.url(repo)} has no branch, tag or reference {revision!r}"
    assert (error.reason, error.message) == (Reason.NOT_FOUND, message)


@pytest.mark.slow
async def test_a_commit_in_capital_letters_is_the_same_commit(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    params = {"url": server.url("boxes.git"), "revision": samples.commit.upper(), "pathInRepo": "box.yaml"}
    assert (await resolve(build_fetch(folder, params))).pinned["revision"] == samples.commit


@pytest.mark.parametrize("path", ["module", "module/box.yaml"])
async def test_what_is_in_a_submodule_is_of_another_repository(
    server: GitServer, samples: SampleRepositories, folder: Path, path: str
) -> None:
    error = await expect_resolution_error(folder, {"url": server.url("boxes.git"), "pathInRepo": path})
    message = f"path {path!r} is in submodule 'module' at {samples.commit}; use the address of that repository"
    assert (error.reason, error.message) == (Reason.NOT_FOUND, message)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_refuses_asks_for_a_credential(server: GitServer, folder: Path, status: int) -> None:
    server.statuses["boxes.git"] = status
    error = await expect_resolution_error(folder, {"url": server.url("boxes.git")})
    assert error.reason is Reason.AUTHENTICATION_REQUIRED
    assert "requires a credential, but the request had none; name a Secret with parameter 'gitToken'" in error.message


@pytest.mark.parametrize(
    ("said", "reason", "told"),
    [
        ("fatal: server is speaking an unknown protocol", Reason.NOT_FOUND, "an unknown version of git's protocol"),
        (
            "fatal: invalid server response; got '# service=git-receive-pack'",
            Reason.NOT_FOUND,
            "an unknown version of git",
        ),
        ("fatal: exceeded maximum allowed tree depth", Reason.TOO_LARGE, "more nested directories than git supports"),
        ("error: index-pack died of signal 11", Reason.TOO_LARGE, "more nested directories than git supports"),
        ("error: index-pack died of signal 24", Reason.TOO_LARGE, "more time or memory to unpack"),
        ("fatal: fetch-pack: invalid index-pack output", Reason.TOO_LARGE, "more time or memory to unpack"),
        ("fatal: early EOF\nfatal: fetch-pack: invalid index-pack output", Reason.UNREACHABLE, "closed the connection"),
        ("fatal: pack has bad object at offset 12", Reason.UNREACHABLE, "closed the connection"),
        ("error: index-pack died of signal 9", Reason.TOO_LARGE, "needs more memory to unpack"),
        ("fatal: mismatched algorithms: client sha256; server sha1", Reason.NOT_FOUND, "commit ids of another length"),
        ("ssh: connect to host a port 22: Connection refused", Reason.UNREACHABLE, "cannot be connected to"),
        ("fatal: Could not read from remote repository.", Reason.INTERNAL, "without a known cause"),
    ],
)
def test_what_git_says_has_a_reason(said: str, reason: Reason, told: str) -> None:
    error = parse_failure(said, uri=URI, has_credential=False)
    assert (error.reason, told in error.message) == (reason, True)


@pytest.mark.parametrize("decides", [is_not_git_server, is_refusing_objects])
def test_what_a_server_says_in_gits_words_decides_nothing(decides: Callable[[str], bool]) -> None:
    words = "dumb http transport; unadvertised object"
    assert (decides(f"fatal: {words}"), decides(f"remote: {words}")) == (True, False)
