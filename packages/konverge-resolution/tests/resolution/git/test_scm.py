"""The APIs of GitHub, GitLab and Gitea: at most two calls, and whose token goes where."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from yarl import URL

from konverge_resolution import Reason, ResolutionError, ResolvedContent
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.git.parameters import SCM_TYPES, ApiSource
from konverge_resolution._internal.resolvers.git.remotes import parse_remote
from konverge_resolution._internal.resolvers.git.scm import build_commit_request
from konverge_resolution._internal.user_access import SshAccess, UserLogin
from konverge_resolution.network import AllowedNetworks, GuardedHttp, OriginCredential, TrustStore
from tests.resolution.git.sample_repositories import BOX, build_fetch, resolve
from tests.resolution.servers.http_server import Handler, http_server

pytestmark = pytest.mark.anyio

COMMIT = "c" * 40
FILE = {"type": "file", "encoding": "base64", "size": len(BOX), "content": base64.encodebytes(BOX.encode()).decode()}
SECRETS = {"mine": {"token": b"sesame"}, "bound": {"token": b"sesame", "host": b"github.com"}}


@dataclass
class Reply:
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    redirected_to: str = ""


@dataclass
class Api:
    """Stands for the client and the server behind it: answers by the path's end."""

    commit: Any = None
    file: Any = field(default_factory=lambda: FILE)
    replies: list[Reply] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def with_settings(self, **more: Any) -> Api:
        return self

    async def get(
        self, url: str, *, headers: Mapping[str, str], max_bytes: int, credential: OriginCredential | None
    ) -> Reply:
        assert credential is None or credential.is_for(URL(url))
        self.asked.append((url, "" if credential is None else credential.value))
        if self.replies:
            return self.replies.pop(0)
        if "/contents/" in url or "/files/" in url:
            return Reply(body=json.dumps(self.file).encode())
        return Reply(body=self.commit if isinstance(self.commit, bytes) else json.dumps(self.commit).encode())


def github() -> Api:
    return Api(commit=COMMIT.encode())


async def resolve_file(
    api: Api, folder: Path, settings: Mapping[str, str] | None = None, **params: str
) -> ResolvedContent:
    given = {"org": "team", "repo": "boxes", "revision": "feature/x", "pathInRepo": "deep/box file.yaml", **params}
    return await resolve(build_fetch(folder, given, settings=settings, secrets=SECRETS, http=api))


async def expect_resolution_error(
    api: Api, folder: Path, settings: Mapping[str, str] | None = None, **params: str
) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await resolve_file(api, folder, settings, **params)
    assert "sesame" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("type_", "server", "commit", "urls", "authorization"),
    [
        (
            "github", "", COMMIT.encode(),
            ["https://api.github.com/repos/team/boxes/commits/feature%2Fx",
             f"https://api.github.com/repos/team/boxes/contents/deep/box%20file.yaml?ref={COMMIT}"],
            "Bearer sesame",
        ),
        (
            "github", "https://git.example", COMMIT.encode(),
            ["https://git.example/api/v3/repos/team/boxes/commits/feature%2Fx",
             f"https://git.example/api/v3/repos/team/boxes/contents/deep/box%20file.yaml?ref={COMMIT}"],
            "Bearer sesame",
        ),
        (
            "gitlab", "https://git.example/sub", {"id": COMMIT},
            ["https://git.example/sub/api/v4/projects/team%2Fboxes/repository/commits/feature%2Fx",
             "https://git.example/sub/api/v4/projects/team%2Fboxes/repository/files/deep%2Fbox%20file.yaml"
             f"?ref={COMMIT}"],
            "Bearer sesame",
        ),
        (
            "gitea", "https://git.example", [{"sha": COMMIT}],
            ["https://git.example/api/v1/repos/team/boxes/commits"
             "?sha=feature%2Fx&limit=1&stat=false&verification=false&files=false",
             f"https://git.example/api/v1/repos/team/boxes/contents/deep/box%20file.yaml?ref={COMMIT}"],
            "token sesame",
        ),
    ],
)  # fmt: skip
async def test_a_file_takes_two_calls_and_a_pinned_one_takes_one(
    folder: Path, type_: str, server: str, commit: Any, urls: list[str], authorization: str
) -> None:
    api = Api(commit=commit)
    named = {"serverURL": server} if server else {}
    resolved = await resolve_file(api, folder, None, scmType=type_, token="mine", **named)
    assert (resolved.data, resolved.source.digest) == (BOX.encode(), {"sha1": COMMIT})
    assert resolved.source.uri == f"git+{server or 'https://github.com'}/team/boxes.git"
    assert api.asked == [(url, authorization) for url in urls]
    await resolve_file(api, folder, None, scmType=type_, token="mine", revision=COMMIT, **named)
    assert len(api.asked) == 3


async def test_the_operators_token_goes_to_the_operators_server_only(folder: Path, tmp_path: Path) -> None:
    # CVE-2026-40161: a request named a server of its own, and was sent the operator's token there.
    held = tmp_path / "token"
    held.write_text("system-token\n")
    settings = {"api-token-file": str(held), "scm-type": "github", "server-url": "https://git.example"}
    api = github()
    error = await expect_resolution_error(api, folder, settings, serverURL="https://evil.example")
    assert (error.reason, api.asked) == (Reason.DENIED, [])
    await resolve_file(api, folder, settings, serverURL="https://evil.example", token="mine")
    assert {authorization for _, authorization in api.asked} == {"Bearer sesame"}
    for named in ({}, {"serverURL": "https://git.example/"}):
        api = github()
        await resolve_file(api, folder, settings, **named)
        assert {authorization for _, authorization in api.asked} == {"Bearer system-token"}


async def test_a_server_of_another_kind_does_not_get_the_operators_token_either(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("system-token\n")
    settings = {"api-token-file": str(tmp_path / "token")}
    api = Api(commit={"id": COMMIT})
    error = await expect_resolution_error(api, folder, settings, scmType="gitlab")
    assert (error.reason, api.asked) == (Reason.DENIED, [])


async def test_a_token_goes_to_no_host_that_it_is_not_for(folder: Path) -> None:
    api = github()
    error = await expect_resolution_error(api, folder, token="bound", serverURL="https://git.example")
    assert (error.reason, api.asked) == (Reason.DENIED, [])
    error = await expect_resolution_error(api, folder, token="mine", serverURL="http://git.example")
    assert (error.reason, api.asked) == (Reason.DENIED, [])


@pytest.mark.parametrize(
    ("reply", "token", "reason", "pause"),
    [
        (Reply(404), False, Reason.NOT_FOUND, None),
        (Reply(410), False, Reason.NOT_FOUND, None),
        (Reply(422), False, Reason.NOT_FOUND, None),
        (Reply(401), False, Reason.AUTHENTICATION_REQUIRED, None),
        (Reply(401), True, Reason.DENIED, None),
        (Reply(403), True, Reason.DENIED, None),
        (Reply(403, {"x-ratelimit-remaining": "0", "retry-after": "7"}), True, Reason.RATE_LIMITED, 7.0),
        (Reply(403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"}), True, Reason.RATE_LIMITED, 0.0),
        (Reply(429, {"retry-after": "30"}), False, Reason.RATE_LIMITED, 30.0),
        (Reply(429, {"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}), False, Reason.RATE_LIMITED, 0.0),
        (Reply(429, {"retry-after": "soon"}), False, Reason.RATE_LIMITED, None),
        (Reply(429), False, Reason.RATE_LIMITED, None),
        (Reply(502), False, Reason.UNREACHABLE, None),
        (Reply(301), False, Reason.NOT_FOUND, None),
        (Reply(200, body=b"<html>"), False, Reason.NOT_FOUND, None),
    ],
)
async def test_an_answer_decides_the_reason_and_is_asked_for_once(
    folder: Path, reply: Reply, token: bool, reason: Reason, pause: float | None
) -> None:
    api = github()
    api.replies.append(reply)
    error = await expect_resolution_error(api, folder, None, **({"token": "mine"} if token else {}))
    assert (error.reason, error.retry_after_seconds, len(api.asked)) == (reason, pause, 1)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ([{"type": "file"}], Reason.NOT_FOUND),
        ({"type": "dir"}, Reason.NOT_FOUND),
        ({"type": "submodule"}, Reason.NOT_FOUND),
        ({"type": "symlink", "target": "/etc/passwd"}, Reason.DENIED),
        ({**FILE, "size": 2 << 20}, Reason.TOO_LARGE),
        ({**FILE, "encoding": "none", "content": ""}, Reason.TOO_LARGE),
        ({**FILE, "content": "=?"}, Reason.UNREACHABLE),
        (7, Reason.NOT_FOUND),
    ],
)
async def test_what_is_no_file_is_refused(folder: Path, file: Any, reason: Reason) -> None:
    api = github()
    api.file = file
    assert (await expect_resolution_error(api, folder)).reason is reason


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b'"\xff"'])
async def test_what_is_no_json_is_no_answer_of_that_kind_of_server(folder: Path, body: bytes) -> None:
    api = Api(commit={"id": COMMIT})
    api.replies.append(Reply(200, body=body))
    error = await expect_resolution_error(api, folder, {"scm-type": "gitlab"})
    assert error.reason is Reason.UNREACHABLE
    assert error.message.endswith("a response that is not JSON; check that it is a gitlab server")


async def test_pinning_asks_for_the_commit_alone(folder: Path) -> None:
    api = github()
    given = {"org": "team", "repo": "boxes", "revision": "main", "pathInRepo": "box.yaml"}
    pinned = await GitResolver().pin(build_fetch(folder, given, http=api))
    assert pinned is not None
    assert (pinned["revision"], len(api.asked)) == (COMMIT, 1)


async def test_a_branch_that_nobody_has_pinned_is_pinned_on_the_way(folder: Path) -> None:
    api = github()
    given = {"org": "team", "repo": "boxes", "revision": "main", "pathInRepo": "box.yaml"}
    resolved = await GitResolver().resolve(build_fetch(folder, given, http=api))
    assert (resolved.pinned["revision"], len(api.asked)) == (COMMIT, 2)


class GitLab(Handler):
    """A GitLab server that has one file; `asked` has the paths as they came."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization", "")))
        body = json.dumps(FILE if "/files/" in self.path else {"id": COMMIT}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def gitlab() -> Iterator[str]:
    GitLab.asked.clear()
    with http_server(GitLab) as port:
        yield f"http://gitlab.test:{port}"


async def test_the_guarded_client_sends_names_as_one_part_of_a_path_and_the_token_with_them(
    folder: Path, gitlab: str
) -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    http = GuardedHttp(lookup, tls=TrustStore(), networks=AllowedNetworks(["127.0.0.0/8"]))
    given = {"org": "group/team", "repo": "boxes", "revision": "feature/x", "pathInRepo": "deep/box.yaml"}
    given |= {"scmType": "gitlab", "serverURL": gitlab, "token": "mine"}
    plain = {"allow-plain-http-credentials": "true"}
    resolved = await resolve(build_fetch(folder, given, settings=plain, secrets=SECRETS, http=http))
    assert resolved.data == BOX.encode()
    assert GitLab.asked == [
        ("/api/v4/projects/group%2Fteam%2Fboxes/repository/commits/feature%2Fx", "Bearer sesame"),
        (f"/api/v4/projects/group%2Fteam%2Fboxes/repository/files/deep%2Fbox.yaml?ref={COMMIT}", "Bearer sesame"),
    ]
    guarded = GuardedHttp(lookup, tls=TrustStore())
    with pytest.raises(ResolutionError) as caught:
        await resolve(build_fetch(folder, given, settings=plain, secrets=SECRETS, http=guarded))
    assert (caught.value.reason, len(GitLab.asked)) == (Reason.DENIED, 2)


@pytest.mark.parametrize("type_", SCM_TYPES)
def test_every_kind_of_server_that_can_be_named_can_be_asked(type_: str) -> None:
    source = ApiSource(type_, parse_remote("https://git.example/-"), None, "team", "boxes")
    assert build_commit_request(source, "main").url.startswith("https://git.example/api/")


@pytest.mark.parametrize(
    ("type_", "replies", "listed", "suggestion"),
    [
        ("github", [Reply(404), Reply(body=b'[{"name": "box-file.yaml"}, {"name": "x"}, {}, 1]')],
         [f"/repos/team/boxes/contents/deep?ref={COMMIT}"], "; did you mean 'deep/box-file.yaml'?"),
        ("github", [Reply(404), Reply(404), Reply(body=b'[{"name": "deeep"}]')],
         [f"/repos/team/boxes/contents/deep?ref={COMMIT}", f"/repos/team/boxes/contents?ref={COMMIT}"],
         "; did you mean 'deeep'?"),
        ("github", [Reply(404), Reply(body=b'[{"name": "other"}]')],
         [f"/repos/team/boxes/contents/deep?ref={COMMIT}"], ""),
        ("github", [Reply(404), Reply(body=b"<html>"), Reply(body=b'{"a": 1}')],
         [f"/repos/team/boxes/contents/deep?ref={COMMIT}", f"/repos/team/boxes/contents?ref={COMMIT}"], ""),
        ("gitlab", [Reply(404), Reply(body=b'[{"name": "box-file.yaml"}]')],
         [f"/projects/team%2Fboxes/repository/tree?path=deep&ref={COMMIT}&per_page=100"],
         "; did you mean 'deep/box-file.yaml'?"),
        ("gitea", [Reply(404), Reply(body=b'[{"name": "box-file.yaml"}]')],
         [f"/repos/team/boxes/contents/deep?ref={COMMIT}"], "; did you mean 'deep/box-file.yaml'?"),
    ],
)  # fmt: skip
async def test_a_missing_file_has_a_suggestion_from_its_folder_or_the_root(
    folder: Path, type_: str, replies: list[Reply], listed: list[str], suggestion: str
) -> None:
    api = Api(replies=[*replies])
    error = await expect_resolution_error(
        api, folder, None, scmType=type_, serverURL="https://git.example", token="mine", revision=COMMIT
    )
    assert error.reason is Reason.NOT_FOUND
    assert error.message.endswith(f"has no file 'deep/box file.yaml' at {COMMIT}{suggestion}")
    assert [url.partition("/api/v")[2][1:] for url, _ in api.asked[1:]] == listed


@dataclass
class User:
    """Has a login for git servers, and notes for which repositories it is looked up."""

    asked: list[str] = field(default_factory=list)
    login: UserLogin = field(default_factory=lambda: UserLogin("ann", "sesame", "git's credential helpers"))

    def recall_login(self, uri: str) -> UserLogin | None:
        return self.login if uri in self.asked else None

    async def find_git_login(self, uri: str) -> UserLogin | None:
        self.asked.append(uri)
        return self.login

    async def find_registry_login(self, uri: str) -> UserLogin | None:
        raise AssertionError(uri)

    async def find_http_login(self, uri: str) -> UserLogin | None:
        raise AssertionError(uri)

    async def find_ssh_access(self, host: str, port: int, user: str) -> SshAccess | None:
        raise AssertionError(host)


@pytest.mark.parametrize("server", ["", "https://git.example"], ids=["the configured server", "another server"])
@pytest.mark.parametrize("status", [401, 404])
async def test_a_login_of_the_user_is_a_token_for_what_a_server_hides_without_one(
    folder: Path, server: str, status: int
) -> None:
    api, user = Api(commit=COMMIT.encode()), User()
    if not server:
        api.replies = [Reply(status)]
    given = {"org": "team", "repo": "boxes", "pathInRepo": "box.yaml", **({"serverURL": server} if server else {})}
    fetch = build_fetch(folder, given, http=api)
    resolved = await resolve(replace(fetch, services=replace(fetch.services, user_credentials=user)))
    assert resolved.data == BOX.encode()
    without = [] if server else [""]
    assert [authorization for _, authorization in api.asked] == [*without, "Bearer sesame", "Bearer sesame"]
    assert user.asked == [f"git+{server or 'https://github.com'}/team/boxes.git"]


async def test_a_login_of_the_user_that_is_refused_is_named_by_its_place(folder: Path) -> None:
    api, user = Api(replies=[Reply(401), Reply(401)]), User()
    fetch = build_fetch(folder, {"org": "team", "repo": "boxes", "pathInRepo": "box.yaml"}, http=api)
    with pytest.raises(ResolutionError) as caught:
        await resolve(replace(fetch, services=replace(fetch.services, user_credentials=user)))
    assert caught.value.reason is Reason.DENIED
    assert "rejects the credential of the request (from git's credential helpers)" in caught.value.message
    assert len(api.asked) == 2
