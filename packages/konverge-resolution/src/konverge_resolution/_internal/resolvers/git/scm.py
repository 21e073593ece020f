"""A file by a server's API, in two calls at most: one finds the commit, one gets the file of that commit.

Requests and answers are values here; `ask` is the one function that sends. A server may redirect a call to another
repository, as it does for one that was renamed: policies judge that repository before it is asked (`name_source`), and
the record has the one that answered.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote

import msgspec
from yarl import URL

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import build_status_error, wrap_network_errors
from konverge_resolution._internal.network import GuardedHttp, HttpResponse, OriginCredential, parse_retry_after
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolvers.git.parameters import NAME, ApiSource
from konverge_resolution._internal.resolvers.git.remotes import parse_remote
from konverge_resolution._internal.resolvers.git.revisions import is_commit

__all__ = [
    "ApiRequest",
    "build_commit_request",
    "build_file_request",
    "find_repository",
    "name_source",
    "parse_commit",
    "parse_file",
    "send_request",
]

_COMMIT_BYTES = 256 * 1024
_ENVELOPE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One call.

    Args:
        url: What is asked for.
        accept: The form of the answer.
        max_bytes: How large it may be.
    """

    url: str
    accept: str
    max_bytes: int


@dataclass(frozen=True, slots=True)
class _ApiDialect:
    """What one kind of server is asked, and answers, in another way than others.

    Args:
        base: The API of a server, by the address at which people see it.
        repository: The path of a repository in the API.
        commit: The path of a revision's commit below it.
        file: The path of a file below it.
        is_path_one_segment: Whether the slashes in a file's path are encoded.
        id_field: The member of the answer that has the commit's id; empty when the answer is nothing but the id.
        commit_type: The form of that answer.
        file_type: The form of the answer with a file.
        scheme: That of the credential.
    """

    base: str
    repository: str
    commit: str
    file: str
    is_path_one_segment: bool = False
    id_field: str = "sha"
    commit_type: str = "application/json"
    file_type: str = "application/json"
    scheme: str = "Bearer"


_APIS: dict[str, _ApiDialect] = {
    "github": _ApiDialect(
        base="{server}/api/v3",
        repository="repos/{org}/{repo}",
        commit="commits/{revision}",
        file="contents/{path}?ref={commit}",
        # This form is the id alone; the usual one has the changes of the commit, which can be megabytes.
        id_field="",
        commit_type="application/vnd.github.sha",
        file_type="application/vnd.github+json",
    ),
    "gitlab": _ApiDialect(
        base="{server}/api/v4",
        repository="projects/{org}%2F{repo}",
        commit="repository/commits/{revision}",
        file="repository/files/{path}?ref={commit}",
        is_path_one_segment=True,
        id_field="id",
    ),
    "gitea": _ApiDialect(
        base="{server}/api/v1",
        repository="repos/{org}/{repo}",
        commit="commits?sha={revision}&limit=1&stat=false&verification=false&files=false",
        file="contents/{path}?ref={commit}",
        scheme="token",
    ),
}
"""By kind of server; their names, and which of them have a public one, are `SCM_TYPES`."""

_APIS_ELSEWHERE = {("github", "github.com"): "https://api.github.com"}
"""By kind and host of the server."""


def build_commit_request(source: ApiSource, revision: str) -> ApiRequest:
    """The call that finds out which commit a revision is.

    Args:
        source: The repository.
        revision: A branch, a tag or a reference.
    """
    api = _APIS[source.type]
    path = api.commit.format(revision=quote(revision, safe=""))
    return ApiRequest(f"{_encode_repository(source)}/{path}", api.commit_type, _COMMIT_BYTES)


def build_file_request(source: ApiSource, commit: str, path: str, max_bytes: int) -> ApiRequest:
    """The call that gets a file of a commit.

    Args:
        source: The repository.
        commit: The commit's id.
        path: Which file.
        max_bytes: How large the file may be.
    """
    api = _APIS[source.type]
    asked = api.file.format(path=quote(path, safe="" if api.is_path_one_segment else "/"), commit=commit)
    size = 2 * max_bytes + _ENVELOPE_BYTES  # base64 in lines
    return ApiRequest(f"{_encode_repository(source)}/{asked}", api.file_type, size)


def _encode_repository(source: ApiSource) -> str:
    named = _APIS[source.type].repository.format(org=quote(source.org, safe=""), repo=source.repo)
    return f"{_find_base_url(source)}/{named}"


def _find_base_url(source: ApiSource) -> str:
    server = source.server
    base = _APIS_ELSEWHERE.get((source.type, server.host))
    return base or _APIS[source.type].base.format(server=f"{server.origin}{server.path.removesuffix('/-')}")


def find_repository(source: ApiSource, url: str) -> ApiSource | None:
    """The repository that a URL of an API is about; None for one that names none in the way of such servers.

    Args:
        source: The repository that was asked for: its kind of server says how URLs are read.
        url: The URL.
    """
    found, base = URL(url), URL(_find_base_url(source))
    prefix = f"{base.raw_path.rstrip('/')}/{_APIS[source.type].repository.partition('/')[0]}/"
    path = found.raw_path
    if not path.startswith(prefix) or ".." in re.split(r"[/\\;]", unquote(path)):
        return None
    parts = path.removeprefix(prefix).split("/")
    *org, repo = unquote(parts[0]).split("/") if source.type == "gitlab" else parts[:2]
    if not org or not all(NAME.fullmatch(part) for part in (*org, repo)):
        return None
    server = source.server
    if found.origin() != base.origin():
        if found.origin() != base.origin().with_scheme("https"):
            return None  # another server may be of another kind, where such a path is anybody's
        server = parse_remote(f"{found.origin()}{server.path}")
    return replace(source, server=server, org="/".join(org), repo=repo)


def name_source(source: ApiSource, url: str) -> str:
    """What policies and records call the place of a URL: the repository that it is about, else the URL itself.

    Args:
        source: The repository that was asked for.
        url: The URL, without a query.
    """
    found = find_repository(source, url)
    return url if found is None else found.uri


async def send_request(
    http: GuardedHttp, request: ApiRequest, source: ApiSource, token: str, *, what: str, now: datetime
) -> HttpResponse:
    """Send a call and get its answer, whose status is a success.

    Args:
        http: What sends.
        request: The call.
        source: The repository.
        token: Whom it is sent as; empty for nobody.
        what: What a message says is missing when there is nothing.
        now: The time, to which a server's wish to be left alone may refer.

    Raises:
        ResolutionError: The answer is a failure.
    """
    credential = OriginCredential(f"{_APIS[source.type].scheme} {token}", origin=request.url) if token else None
    with wrap_network_errors(f"the server of {source.uri}"):
        answer = await http.get(
            request.url, headers={"Accept": request.accept}, max_bytes=request.max_bytes, credential=credential
        )
    if answer.status == 200:
        return answer
    raise _build_error(answer, source, has_token=bool(token), what=what, now=now)


def parse_commit(source: ApiSource, body: bytes) -> str:
    """The commit's id in the answer to `build_commit_request`.

    Args:
        source: The repository.
        body: The answer.

    Raises:
        ResolutionError: There is none.
    """
    found: Any = body.decode("ascii", "replace").strip()
    if field := _APIS[source.type].id_field:
        message = _decode_body(source, body)
        first = message[0] if isinstance(message, list) and message else message
        found = first.get(field) if isinstance(first, dict) else None
    if isinstance(found, str) and is_commit(found):
        return found
    raise ResolutionError(Reason.NOT_FOUND, f"the server of {source.uri} names no commit for the revision")


def parse_file(source: ApiSource, body: bytes, path: str, max_bytes: int) -> tuple[bytes, str]:
    """Return the file in the response to `build_file_request`, and its path.

    If the server follows a symbolic link, the path is the target's.

    Args:
        source: The repository.
        body: The answer.
        path: Which file was asked for.
        max_bytes: How large it may be.

    Raises:
        ResolutionError: It is no file, or too large.
    """
    message = _decode_body(source, body)
    if isinstance(message, list):
        raise ResolutionError(Reason.NOT_FOUND, f"path {path!r} is a directory of {source.uri}; expected a file")
    kind = message.get("type", "file") if isinstance(message, dict) else ""
    if kind == "symlink":
        raise ResolutionError(Reason.DENIED, f"path {path!r} is a symbolic link that the server does not follow")
    if not isinstance(message, dict) or kind != "file":
        raise ResolutionError(Reason.NOT_FOUND, f"path {path!r} is no file of {source.uri}")
    size, content, encoding = message.get("size"), message.get("content"), message.get("encoding")
    if isinstance(size, int) and size > max_bytes:
        told_size = f"file {path!r} has {size} bytes, expected at most {max_bytes}"
        raise ResolutionError(Reason.TOO_LARGE, told_size)
    if encoding != "base64" or not isinstance(content, str):
        raise ResolutionError(Reason.UNREACHABLE, f"the server of {source.uri} answers without the file's content")
    try:
        data = base64.b64decode("".join(content.split()), validate=True)
    except binascii.Error:
        raise ResolutionError(Reason.UNREACHABLE, f"the server of {source.uri} answers with broken content") from None
    if len(data) > max_bytes:
        told_size = f"file {path!r} has {len(data)} bytes, expected at most {max_bytes}"
        raise ResolutionError(Reason.TOO_LARGE, told_size)
    found = message.get("path") or message.get("file_path")
    return data, found.lstrip("/") if isinstance(found, str) else path


def _decode_body(source: ApiSource, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except DECODE_ERRORS:
        message = f"the server of {source.uri} answers with something that is not JSON; is it a {source.type} server?"
        raise ResolutionError(Reason.UNREACHABLE, message) from None


def _build_error(
    answer: HttpResponse, source: ApiSource, *, has_token: bool, what: str, now: datetime
) -> ResolutionError:
    """What these servers mean by a status where they differ from others; for the rest as for all of HTTP."""
    server = f"the server of {source.uri}"
    if answer.status in (404, 409, 410, 422):  # 409: an empty repository; 422: no such commit
        message = f"repository {source.uri} does not exist, is hidden, or has no {what}"
        return ResolutionError(Reason.NOT_FOUND, message)
    if answer.status in (403, 429) and answer.headers.get("x-ratelimit-remaining") == "0":
        pause = parse_retry_after(answer.headers.get("retry-after", ""), now)
        reset = answer.headers.get("x-ratelimit-reset", "")
        if pause is None and reset.isdecimal() and len(reset) < 12:
            pause = max(0.0, float(reset) - now.timestamp())
        return ResolutionError(Reason.RATE_LIMITED, f"{server} is asked too often", retry_after_seconds=pause)
    return build_status_error(answer, server, has_credential=has_token, now=now)
