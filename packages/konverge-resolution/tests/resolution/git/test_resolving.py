"""Files of repositories on a real server: which bytes come, and what is told of where they came from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from konverge_resolution import Reason, ResolutionError, ResolvedContent
from konverge_resolution._internal.resolvers.git import GitResolver
from tests.resolution.git.sample_repositories import BOX, Loopback, SampleRepositories, build_fetch, list_files, resolve
from tests.resolution.servers.git import GitServer, git

pytestmark = pytest.mark.anyio

B = BOX.replace("a}", "b}").encode()


async def resolve_file(
    server: GitServer, folder: Path, revision: str, path: str = "box.yaml", repo: str = "boxes.git"
) -> ResolvedContent:
    return await resolve(build_fetch(folder, {"url": server.url(repo), "revision": revision, "pathInRepo": path}))


async def expect_resolution_error(server: GitServer, folder: Path, params: Mapping[str, str]) -> ResolutionError:
    given = {"url": server.url("boxes.git"), "revision": "main", "pathInRepo": "box.yaml", **params}
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, given))
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["main", "HEAD", "refs/heads/main", "v2", "refs/tags/v2"])
async def test_every_name_of_a_commit_gives_its_file_and_the_commit(
    server: GitServer, samples: SampleRepositories, folder: Path, revision: str
) -> None:
    resolved = await resolve_file(server, folder, revision)
    assert (resolved.data, resolved.source.digest) == (B, {"sha1": samples.commit})
    assert resolved.source.uri == f"git+{server.url('boxes.git')}"
    assert resolved.source.entry_point == "box.yaml"
    assert resolved.pinned["revision"] == samples.commit


@pytest.mark.parametrize("revision", ["v1", "release/1.0", "abcdef12"])
async def test_older_commits_are_found_too(
    server: GitServer, samples: SampleRepositories, folder: Path, revision: str
) -> None:
    resolved = await resolve_file(server, folder, revision)
    assert (resolved.data, resolved.source.digest["sha1"]) == (BOX.encode(), samples.first)


@pytest.mark.slow
async def test_commits_are_fetched_by_their_id_wherever_they_are(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    for commit in (samples.commit, samples.first, samples.deleted):
        resolved = await resolve_file(server, folder, commit)
        assert resolved.source.digest == {"sha1": commit}


@pytest.mark.slow
async def test_the_digest_of_an_annotated_tag_is_its_commit_however_it_is_named(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    by_name = await resolve_file(server, folder, "v2")
    by_its_own_id = await resolve_file(server, folder, samples.tag_object)
    assert by_name.source.digest == by_its_own_id.source.digest == {"sha1": samples.commit}


@pytest.mark.slow
@pytest.mark.parametrize("repo", ["boxes.git", "sha256.git"])
async def test_a_branch_that_nobody_has_pinned_is_pinned_on_the_way(server: GitServer, folder: Path, repo: str) -> None:
    fetch = build_fetch(folder, {"url": server.url(repo), "revision": "main", "pathInRepo": "box.yaml"})
    assert await GitResolver().resolve(fetch) == await resolve(fetch)


@pytest.mark.slow
async def test_a_repository_of_sha256_is_on_record_with_sha256(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    for revision in ("main", samples.sha256):
        resolved = await resolve_file(server, folder, revision, repo="sha256.git")
        assert (resolved.data, resolved.source.digest) == (BOX.encode(), {"sha256": samples.sha256})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/box.yaml", B),
        ("./deep//er/box.yaml", BOX.replace("a}", "deep}").encode()),
        ("inside", BOX.replace("a}", "deep}").encode()),
        ("deep/up", B),
        ("folder/er/box.yaml", BOX.replace("a}", "deep}").encode()),
        ("chain45", B),
        ("a file.yaml", b"kind: Blank\n"),
    ],
)
async def test_paths_and_links_inside_the_repository_are_followed(
    server: GitServer, folder: Path, path: str, data: bytes
) -> None:
    assert (await resolve_file(server, folder, "main", path)).data == data


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("filtered.yaml", b"kind: Stored\n"),
        ("windows.yaml", b"kind: Lines\n"),
        ("pointer.yaml", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"),
    ],
)
async def test_content_is_returned_as_stored_and_nothing_of_the_repository_runs(
    server: GitServer, samples: SampleRepositories, folder: Path, path: str, data: bytes
) -> None:
    # There are hooks, filters, a submodule and a pointer of LFS in it; the machine's own filters are of no interest.
    assert (await resolve_file(server, folder, "main", path)).data == data
    assert not samples.marker.exists()


@pytest.mark.parametrize("path", ["passwd", "above", "etc/passwd", "one"])
async def test_links_out_of_the_repository_and_circles_are_refused(server: GitServer, folder: Path, path: str) -> None:
    # CVE-2026-33211: a link in a work tree gave any file of the machine to whoever asked.
    error = await expect_resolution_error(server, folder, {"pathInRepo": path})
    assert error.reason is Reason.DENIED
    assert "symbolic link" in error.message


@pytest.mark.slow
async def test_a_chain_of_fifty_links_is_refused(server: GitServer, folder: Path) -> None:
    # From a server that does not filter: each link is a fetch of its own otherwise.
    error = await expect_resolution_error(server, folder, {"url": server.url("strict.git"), "pathInRepo": "chain0"})
    assert (error.reason, "too many of them" in error.message) == (Reason.DENIED, True)


@pytest.mark.slow
async def test_what_does_not_exist_is_told_apart_and_asked_for_once(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    cases = [
        {"url": server.url("none.git")},
        {"revision": "nope"},
        {"revision": "0" * 8},
        {"revision": "0" * 40},
        {"pathInRepo": "no.yaml"},
        {"pathInRepo": "deep"},
        {"pathInRepo": "box.yaml/x"},
        {"pathInRepo": "nowhere"},
        {"pathInRepo": "module"},
    ]
    errors = [await expect_resolution_error(server, folder, params) for params in cases]
    assert {error.reason for error in errors} == {Reason.NOT_FOUND}
    assert [error.message.replace(samples.commit, "C").replace(server.url(""), "") for error in errors] == [
        "repository git+none.git does not exist, or requires a credential",
        "parameter 'revision': repository git+boxes.git has no branch, tag or reference 'nope'",
        "parameter 'revision': repository git+boxes.git has no branch or tag '00000000', and no commit of its branches "
        "and tags begins so; give all digits",
        f"repository git+boxes.git does not have commit {'0' * 40}, or does not send it by its id",
        "file 'no.yaml' does not exist in repository git+boxes.git at C; did you mean 'box.yaml'?",
        "path 'deep' is a directory at C; expected a file",
        "path 'box.yaml/x': a part before the last is a file at C",
        "path 'nowhere' at C leads through a symbolic link to a file that does not exist",
        "path 'module' is in submodule 'module' at C; use the address of that repository",
    ]
    info = [seen for seen in server.seen if "/none.git/info/refs" in seen.path]
    assert len(info) == 1


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"pathInRepo": "bx.yaml"}, "; did you mean 'box.yaml'?"),
        ({"pathInRepo": "deep/er/boks.yaml"}, "; did you mean 'deep/er/box.yaml'?"),
        ({"pathInRepo": "dep/er/box.yaml"}, "; did you mean 'deep'?"),
        ({"revision": "mian"}, "; did you mean 'main'?"),
        ({"revision": "refs/tags/v22"}, "; did you mean 'v2'?"),
        ({"revision": "release/2.0"}, "; did you mean 'release/1.0'?"),
    ],
)
async def test_what_is_misspelt_is_told_with_what_may_be_meant(
    server: GitServer, folder: Path, params: Mapping[str, str], told: str
) -> None:
    assert (await expect_resolution_error(server, folder, params)).message.endswith(told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "told"),
    [("large.bin", "is larger than the limit for a definition"), ("zeros.bin", "has 67108864 bytes")],
)
async def test_a_file_that_is_too_large_is_refused_packed_or_unpacked(
    server: GitServer, folder: Path, path: str, told: str
) -> None:
    error = await expect_resolution_error(server, folder, {"pathInRepo": path})
    assert (error.reason, f"file {path!r} {told}" in error.message) == (Reason.TOO_LARGE, True)


async def test_a_fetch_moves_the_file_that_is_wanted_and_no_other(server: GitServer, folder: Path) -> None:
    await resolve_file(server, folder, "main")
    assert server.bytes_sent < 20_000  # there are 6 MB in the repository


async def test_finding_out_where_a_branch_is_takes_one_question(server: GitServer, folder: Path) -> None:
    fetch = build_fetch(folder, {"url": server.url("boxes.git"), "revision": "main", "pathInRepo": "box.yaml"})
    await GitResolver().pin(fetch)
    assert [(seen.method, seen.path.rpartition("/")[2]) for seen in server.seen] == [
        ("GET", "refs?service=git-upload-pack"),
        ("POST", "git-upload-pack"),
    ]
    assert server.bytes_sent < 1_000


@pytest.mark.slow
async def test_a_server_that_does_not_filter_is_good_enough_within_the_limit(server: GitServer, folder: Path) -> None:
    assert (await resolve_file(server, folder, "main", repo="strict.git")).data == B


@pytest.mark.slow
async def test_a_repository_beyond_the_limit_is_refused_and_nothing_of_it_stays(
    server: GitServer, folder: Path
) -> None:
    params = {"url": server.url("strict.git"), "pathInRepo": "box.yaml"}
    fetch = build_fetch(folder, params, settings={"max-repository-bytes": "1000000"})
    with pytest.raises(ResolutionError) as caught:
        await resolve(fetch)
    assert caught.value.reason is Reason.TOO_LARGE
    assert "max-repository-bytes" in caught.value.message
    assert list_files(folder) == ["lock"]


@pytest.mark.slow
@pytest.mark.parametrize("repo", ["boxes.git", "strict.git"])
async def test_a_server_of_protocol_0_is_good_enough(
    server: GitServer, samples: SampleRepositories, folder: Path, repo: str
) -> None:
    server.speaks_only_protocol_0 = True
    resolved = await resolve_file(server, folder, "main", repo=repo)
    assert (resolved.data, resolved.source.digest["sha1"]) == (B, samples.commit)


async def test_two_revisions_at_the_same_time_do_not_disturb_each_other(server: GitServer, folder: Path) -> None:
    both = await asyncio.gather(*(resolve_file(server, folder, revision) for revision in ("v1", "v2") * 2))
    assert [resolved.data for resolved in both] == [BOX.encode(), B] * 2


async def test_git_connects_to_the_address_that_was_checked_and_resolves_no_name(
    server: GitServer, folder: Path
) -> None:
    # The name exists nowhere but in what was checked: had git asked for it, there would be no answer.
    addresses = Loopback()
    params = {"url": server.url("boxes.git", host="name.invalid"), "pathInRepo": "box.yaml"}
    assert (await resolve(build_fetch(folder, params, addresses=addresses))).data == B
    assert set(addresses.asked) == {("name.invalid", server.port)}


async def test_an_address_that_is_not_allowed_is_never_asked(server: GitServer, folder: Path) -> None:
    params = {"url": server.url("boxes.git", host="127.0.0.1"), "pathInRepo": "box.yaml"}
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, params, addresses=Loopback(frozenset({"127.0.0.1"}))))
    assert (caught.value.reason, server.seen) == (Reason.DENIED, [])


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, Reason.RATE_LIMITED),
        (500, Reason.UNREACHABLE),
        (503, Reason.UNREACHABLE),
        (404, Reason.NOT_FOUND),
        (400, Reason.INVALID_PARAMETERS),
        (405, Reason.DENIED),
        (451, Reason.DENIED),
    ],
)
async def test_a_servers_status_decides_the_reason(
    server: GitServer, folder: Path, status: int, reason: Reason
) -> None:
    server.statuses["boxes.git"] = status
    assert (await expect_resolution_error(server, folder, {})).reason is reason
    assert len(server.seen) == 1  # trying again is the engine's business


@pytest.fixture(scope="session")
def released(samples: SampleRepositories) -> dict[str, str]:
    """A repository with versions as tags; its commits by tag."""
    work = samples.root / "released"
    work.mkdir()
    git("init", "--quiet", folder=work)
    commits = {}
    for tag in ("v0.9.0", "v1.0.0", "1.2.0", "v1.2.3", "v1.10.0", "v2.0.0-rc.1", "v2.0.0", "vfinal", "shop/v9.0.0"):
        (work / "box.yaml").write_text(BOX.replace("a}", f"{tag.replace('/', '-').lower()}}}"))
        git("add", ".", folder=work)
        git("commit", "--quiet", "-m", tag, folder=work)
        git("tag", *(["-a", "-m", "x"] if tag == "v1.10.0" else []), tag, folder=work)
        commits[tag] = git("rev-parse", "HEAD", folder=work)
    git("branch", "v3.x", "v0.9.0", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(samples.root / "released.git"), folder=samples.root)
    git("config", "uploadpack.allowFilter", "true", folder=samples.root / "released.git")
    return commits


@pytest.mark.parametrize(
    ("revision", "tag"),
    [
        ("v1.x", "v1.10.0"),
        ("1.2.x", "v1.2.3"),
        ("^1.2", "v1.10.0"),
        ("~1.2", "v1.2.3"),
        (">=1.2 <1.10", "v1.2.3"),
        (">=0.1", "v2.0.0"),
        ("0.9.x || 1.0.x", "v1.0.0"),
        ("1.0 - 1.2", "v1.2.3"),
        ("v3.x", "v0.9.0"),  # a branch of that name
        ("v1.0.0", "v1.0.0"),
    ],
)
async def test_a_range_of_versions_is_the_highest_tag_in_it_and_a_name_comes_first(
    server: GitServer, released: dict[str, str], folder: Path, revision: str, tag: str
) -> None:
    resolved = await resolve_file(server, folder, revision, repo="released.git")
    assert resolved.source.digest == {"sha1": released[tag]}
    assert resolved.pinned["revision"] == released[tag]


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["v4.x", "^7", "3.x.x", "v1.2", "1"])
async def test_a_range_without_a_tag_and_a_part_of_a_version_are_not_found(
    server: GitServer, released: dict[str, str], folder: Path, revision: str
) -> None:
    error = await expect_resolution_error(server, folder, {"url": server.url("released.git"), "revision": revision})
    assert error.reason is Reason.NOT_FOUND
    assert ("besides pre-releases" in error.message) == (revision not in ("v1.2", "1"))


@pytest.mark.slow
@pytest.mark.parametrize("length", [7, 12, 39])
async def test_the_beginning_of_a_commit_id_is_found_among_all_commits(
    server: GitServer, samples: SampleRepositories, released: dict[str, str], folder: Path, length: int
) -> None:
    for commit in (released["v1.0.0"], released["vfinal"]):
        for revision in (commit[:length], commit[:length].upper()):
            resolved = await resolve_file(server, folder, revision, repo="released.git")
            assert resolved.source.digest == {"sha1": commit}
    error = await expect_resolution_error(server, folder, {"revision": samples.deleted[:length]})
    assert (error.reason, "no commit of its branches and tags begins so" in error.message) == (Reason.NOT_FOUND, True)


@pytest.mark.slow
async def test_the_beginning_of_a_commit_id_is_found_in_every_format_and_without_filters(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    long = await resolve_file(server, folder, samples.sha256[:10], repo="sha256.git")
    assert long.source.digest == {"sha256": samples.sha256}
    strict = await resolve_file(server, folder, samples.first[:10], repo="strict.git")
    assert strict.source.digest == {"sha1": samples.first}


@pytest.mark.slow
async def test_a_beginning_costs_the_commits_and_none_of_the_files(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    server.reset_counters()
    fetch = build_fetch(
        folder, {"url": server.url("boxes.git"), "revision": samples.first[:8], "pathInRepo": "box.yaml"}
    )
    pinned = await GitResolver().pin(fetch)
    assert pinned is not None
    assert pinned["revision"] == samples.first
    assert server.bytes_sent < 100_000  # a file of it has six megabytes
    assert list_files(folder) == ["lock"]


async def test_the_files_of_a_revision_are_listed_without_their_content(
    server: GitServer, samples: SampleRepositories, folder: Path
) -> None:
    resolver = GitResolver()
    fetch = build_fetch(folder, {"url": server.url("boxes.git"), "revision": "v2", "pathInRepo": "box.yaml"})
    params = resolver.validate_listing({"url": server.url("boxes.git"), "revision": "v2"}, fetch.settings)
    server.reset_counters()
    listed = await resolver.list_definitions(replace(fetch, params=params))
    assert [each.params["pathInRepo"] for each in listed] == [
        "a file.yaml",
        "box.yaml",
        "deep/er/box.yaml",
        "filtered.yaml",
        "pointer.yaml",
        "windows.yaml",
    ]  # neither links nor the submodule
    assert listed[1].digest == f"sha1:{git('rev-parse', 'v2:box.yaml', folder=samples.root / 'boxes.git')}"
    assert {each.size_bytes for each in listed} == {None}
    assert server.bytes_sent < 100_000


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"pathInRepo": "a"}, "parameter 'pathInRepo': has no effect on a list"),
        ({"repo": "a", "org": "b"}, "parameter 'repo': cannot list files"),
        ({"url": "file:///etc"}, "parameter 'url': expected http"),
    ],
)
def test_a_list_of_files_has_no_file(params: dict[str, str], told: str) -> None:
    with pytest.raises(ResolutionError, match=told):
        GitResolver().validate_listing(params, {})
