"""Symbolic links in a repository: policies judge where they lead, and the record has that."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from konverge_resolution import Reason, Reference, ResolutionError
from konverge_resolution._internal.content_store import ContentStore
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.lock_file import LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.policy import Policy
from tests.resolution.git.sample_repositories import BOX, SampleRepositories
from tests.resolution.git.test_engine_resolution import engine_of, expect_resolution_error, resolve_file
from tests.resolution.git.test_scm import COMMIT, FILE, Api
from tests.resolution.servers.git import GitServer, git

pytestmark = pytest.mark.anyio

DEEP = BOX.replace("a}", "deep}").encode()


def only(*paths: str) -> list[Policy]:
    return [Policy("paths", parameters={"pathInRepo": paths})]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("inside", "deep/er/box.yaml"),
        ("folder/er/box.yaml", "deep/er/box.yaml"),
        ("deep/up", "box.yaml"),
        ("folder/up", "box.yaml"),
        ("chain45", "box.yaml"),
    ],
)
@pytest.mark.parametrize("repository", ["boxes.git", "strict.git"])
async def test_a_policy_on_paths_judges_where_a_link_leads(
    server: GitServer, folder: Path, repository: str, path: str, target: str
) -> None:
    params = {"url": server.url(repository), "pathInRepo": path}
    error = await expect_resolution_error(engine_of(folder, policies=only(path)), params)
    assert error.reason is Reason.DENIED
    assert error.message.startswith(
        f"parameter 'pathInRepo' leads to '{target}': no policy allows namespace web to fetch "
    )
    assert "paths (it allows other values of parameter 'pathInRepo')" in error.message
    outcome = await resolve_file(engine_of(folder, policies=only(path, target)), params)
    assert outcome.resolved.source.entry_point == target
    assert outcome.resolved.annotations["path"] == path


@pytest.mark.slow
async def test_a_file_that_is_no_link_is_recorded_as_it_is_called(server: GitServer, folder: Path) -> None:
    params = {"url": server.url("boxes.git"), "pathInRepo": "deep/er/box.yaml"}
    outcome = await resolve_file(engine_of(folder, policies=only("deep/*")), params)
    assert (outcome.resolved.data, outcome.resolved.source.entry_point) == (DEEP, "deep/er/box.yaml")
    assert outcome.resolved.found_params == {}


@pytest.mark.slow
async def test_a_link_from_the_cache_is_judged_as_the_one_that_was_fetched(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    engine = engine_of(folder)
    params = {"url": server.url("boxes.git"), "pathInRepo": "inside", "revision": samples.commit}
    await resolve_file(engine, params)
    engine.policies = tuple(only("inside"))
    assert "leads to 'deep/er/box.yaml'" in (await expect_resolution_error(engine, params)).message


@pytest.mark.slow
async def test_above_the_target_of_a_link_is_not_above_the_link(
    server: GitServer, folder: Path, tmp_path: Path
) -> None:
    """``a/b/link`` leads to ``x/y``; its parent is ``x``, not ``a/b``."""
    work = tmp_path / "work"
    (work / "x/y").mkdir(parents=True)
    (work / "a/b").mkdir(parents=True)
    git("init", "--quiet", folder=work)
    (work / "x/box.yaml").write_bytes(DEEP)
    (work / "a/b/box.yaml").write_text(BOX)
    (work / "x/y/keep").write_text("")
    (work / "a/b/link").symlink_to("../../x/y")
    (work / "entry").symlink_to("a/b/link/../box.yaml")
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    name = f"{tmp_path.name}-links.git"
    git("clone", "--quiet", "--bare", str(work), str(server.root / name), folder=tmp_path)
    git("config", "uploadpack.allowFilter", "true", folder=server.root / name)
    params = {"url": server.url(name), "pathInRepo": "entry"}
    outcome = await resolve_file(engine_of(folder, policies=only("entry", "x/box.yaml")), params)
    assert (outcome.resolved.data, outcome.resolved.source.entry_point) == (DEEP, "x/box.yaml")
    assert (
        "leads to 'x/box.yaml'"
        in (await expect_resolution_error(engine_of(folder, policies=only("entry", "a/*")), params)).message
    )


@pytest.mark.slow
async def test_a_link_in_a_folder_of_thousands_is_found(server: GitServer, folder: Path, tmp_path: Path) -> None:
    """What git lists is bounded: other files of the folder must not push the link out of it."""
    work = tmp_path / "work"
    (work / "a/z").mkdir(parents=True)
    git("init", "--quiet", folder=work)
    for number in range(3000):
        (work / f"a/{number:040}").write_text("")
    (work / "a/z/box.yaml").write_bytes(DEEP)
    (work / "a/zlink").symlink_to("z")
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    name = f"{tmp_path.name}-many.git"
    git("clone", "--quiet", "--bare", str(work), str(server.root / name), folder=tmp_path)
    git("config", "uploadpack.allowFilter", "true", folder=server.root / name)
    params = {"url": server.url(name), "pathInRepo": "a/zlink/box.yaml"}
    assert (
        "leads to 'a/z/box.yaml'"
        in (await expect_resolution_error(engine_of(folder, policies=only("a/zlink/*")), params)).message
    )


async def expect_denial(locked: LockedResolver, reference: Reference) -> str:
    with pytest.raises(ResolutionError) as caught:
        await locked.resolve(reference, Requester("web"))
    assert caught.value.reason is Reason.DENIED
    return caught.value.message


async def test_what_a_link_led_to_is_locked_and_judged_without_a_connection(
    server: GitServer, folder: Path, tmp_path: Path
) -> None:
    def locked(engine: Engine, lock: LockFile, *, offline: bool) -> LockedResolver:
        return LockedResolver(engine, lock, contents, is_offline=offline, may_add=not offline)

    contents = await asyncio.to_thread(ContentStore, tmp_path / "contents")
    reference = Reference("git", {"url": server.url("boxes.git"), "pathInRepo": "inside"})
    adding = locked(engine_of(folder), LockFile(), offline=False)
    await adding.resolve(reference, Requester("web"))
    lock = LockFile.parse(adding.lock.serialize().encode(), file="boxes.lock")
    assert [entry.found_params for entry in lock] == [{"pathInRepo": "deep/er/box.yaml"}]
    server.reset_counters()
    allowed = locked(engine_of(folder, policies=only("inside", "deep/*")), lock, offline=True)
    assert (await allowed.resolve(reference, Requester("web"))).resolved.data == DEEP
    refusing = locked(engine_of(folder, policies=only("inside")), lock, offline=True)
    assert "leads to 'deep/er/box.yaml'" in await expect_denial(refusing, reference)
    assert server.seen == []


async def test_an_api_that_follows_a_link_is_judged_by_the_path_that_it_answers_with(folder: Path) -> None:
    api = Api(commit=COMMIT.encode(), file={**FILE, "path": "secret/box.yaml"})
    params = {"org": "team", "repo": "boxes", "pathInRepo": "box.yaml"}
    error = await expect_resolution_error(engine_of(folder, http=api, policies=only("box.yaml")), params)
    assert (error.reason, "leads to 'secret/box.yaml'" in error.message) == (Reason.DENIED, True)
    outcome = await resolve_file(engine_of(folder, http=api), params)
    assert outcome.resolved.source.entry_point == "secret/box.yaml"
