"""Files through a server's API in at most two requests: one for the commit, one for the file of that commit.

Requests and responses are values here; only `send_request` does I/O. A server can redirect a request to another
repository, for example after a rename. Policies check that repository before the request is sent there (`name_source`),
and the provenance names the repository that responded.
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
    "build_folder_request",
    "find_repository",
    "name_source",
    "parse_commit",
    "parse_file",
    "parse_folder",
    "send_request",
]

_COMMIT_BYTES = 256 * 1024
_ENVELOPE_BYTES = 64 * 1024
_FOLDER_BYTES = 2 << 20


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """Request to a server's API.

    Args:
        url: The URL of the request.
        accept: The media type of the response.
        max_bytes: The maximum size of the response.
    """

    url: str
    accept: str
    max_bytes: int


@dataclass(frozen=True, slots=True)
class _ApiDialect:
    """Differences between the APIs of the supported types of servers.

    Args:
        base: The URL of the API, relative to the address of the web pages.
        repository: The path of a repository in the API.
        commit: The path for a revision's commit below the repository.
        file: The path for a file below the repository.
        folder: The path for a list of a folder below the repository; the path of the folder begins with a slash.
        is_path_one_segment: Whether the slashes in a file's path are encoded.
        id_field: The field of the response with the commit id; empty if the response contains only the id.
        commit_type: The media type of the response with a commit.
        file_type: The media type of the response with a file.
        scheme: The authentication scheme of the credential.
    """

    base: str
    repository: str
    commit: str
    file: str
    folder: str = "contents{path}?ref={commit}"
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
        # This media type returns only the id; the default one includes the changes of the commit, possibly megabytes.
        id_field="",
        commit_type="application/vnd.github.sha",
        file_type="application/vnd.github+json",
    ),
    "gitlab": _ApiDialect(
        base="{server}/api/v4",
        repository="projects/{org}%2F{repo}",
        commit="repository/commits/{revision}",
        file="repository/files/{path}?ref={commit}",
        folder="repository/tree?path={path}&ref={commit}&per_page=100",
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
"""APIs by type of server; `SCM_TYPES` has the types and their public servers."""

_APIS_ELSEWHERE = {("github", "github.com"): "https://api.github.com"}
"""URLs of APIs on another host, by type and host of the server."""


def build_commit_request(source: ApiSource, revision: str) -> ApiRequest:
    """Return the request for the commit of a revision.

    Args:
        source: The repository.
        revision: A branch, a tag or a reference.
    """
    api = _APIS[source.type]
    path = api.commit.format(revision=quote(revision, safe=""))
    return ApiRequest(f"{_encode_repository(source)}/{path}", api.commit_type, _COMMIT_BYTES)


def build_file_request(source: ApiSource, commit: str, path: str, max_bytes: int) -> ApiRequest:
    """Return the request for a file of a commit.

    Args:
        source: The repository.
        commit: The commit id.
        path: The path of the file.
        max_bytes: The maximum size of the file.
    """
    api = _APIS[source.type]
    file = api.file.format(path=quote(path, safe="" if api.is_path_one_segment else "/"), commit=commit)
    size = 2 * max_bytes + _ENVELOPE_BYTES  # base64 in lines
    return ApiRequest(f"{_encode_repository(source)}/{file}", api.file_type, size)


def build_folder_request(source: ApiSource, commit: str, folder: str) -> ApiRequest:
    """Return the request for the names in a folder of a commit.

    Args:
        source: The repository.
        commit: The commit id.
        folder: The path of the folder; empty for the root.
    """
    api = _APIS[source.type]
    path = quote(folder, safe="" if api.is_path_one_segment else "/")
    path = f"/{path}" if path and not api.is_path_one_segment else path
    url = f"{_encode_repository(source)}/{api.folder.format(path=path, commit=commit)}"
    return ApiRequest(url, api.file_type, _FOLDER_BYTES)


def parse_folder(source: ApiSource, body: bytes) -> list[str]:
    """Return the names in the response to `build_folder_request`; none if it is not a list.

    Raises:
        ResolutionError: The response is not JSON.
    """
    document = _decode_body(source, body)
    entries = document if isinstance(document, list) else []
    return [entry["name"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("name"), str)]


def _encode_repository(source: ApiSource) -> str:
    repository = _APIS[source.type].repository.format(org=quote(source.org, safe=""), repo=source.repo)
    return f"{_find_base_url(source)}/{repository}"


def _find_base_url(source: ApiSource) -> str:
    server = source.server
    base = _APIS_ELSEWHERE.get((source.type, server.host))
    return base or _APIS[source.type].base.format(server=f"{server.origin}{server.path.removesuffix('/-')}")


def find_repository(source: ApiSource, url: str) -> ApiSource | None:
    """Return the repository of an API's URL; None if the URL names none in the form of this API.

    Args:
        source: The requested repository; its type of server determines the form of URLs.
        url: The URL.
    """
    address, base = URL(url), URL(_find_base_url(source))
    prefix = f"{base.raw_path.rstrip('/')}/{_APIS[source.type].repository.partition('/')[0]}/"
    path = address.raw_path
    if not path.startswith(prefix) or ".." in re.split(r"[/\\;]", unquote(path)):
        return None
    parts = path.removeprefix(prefix).split("/")
    *org, repo = unquote(parts[0]).split("/") if source.type == "gitlab" else parts[:2]
    if not org or not all(NAME.fullmatch(part) for part in (*org, repo)):
        return None
    server = source.server
    if address.origin() != base.origin():
        if address.origin() != base.origin().with_scheme("https"):
            return None  # another server may have another type, where the path means something else
        server = parse_remote(f"{address.origin()}{server.path}")
    return replace(source, server=server, org="/".join(org), repo=repo)


def name_source(source: ApiSource, url: str) -> str:
    """Return the name of a URL in policies and records: its repository, otherwise the URL itself.

    Args:
        source: The requested repository.
        url: The URL, without a query.
    """
    repository = find_repository(source, url)
    return url if repository is None else repository.uri


async def send_request(
    http: GuardedHttp, request: ApiRequest, source: ApiSource, token: str, *, what: str, now: datetime
) -> HttpResponse:
    """Send a request and return its response, which has status 200.

    Args:
        http: The HTTP client.
        request: The request.
        source: The repository.
        token: The token for authentication; empty for none.
        what: The name of the requested item in messages.
        now: The current time, for a ``Retry-After`` that is a date.

    Raises:
        ResolutionError: The response has another status, or there is none.
    """
    credential = OriginCredential(f"{_APIS[source.type].scheme} {token}", origin=request.url) if token else None
    with wrap_network_errors(f"the server of {source.uri}"):
        response = await http.get(
            request.url, headers={"Accept": request.accept}, max_bytes=request.max_bytes, credential=credential
        )
    if response.status == 200:
        return response
    raise _build_error(response, source, has_token=bool(token), what=what, now=now)


def parse_commit(source: ApiSource, body: bytes) -> str:
    """Return the commit id in the response to `build_commit_request`.

    Args:
        source: The repository.
        body: The body of the response.

    Raises:
        ResolutionError: The response contains no commit id.
    """
    commit: Any = body.decode("ascii", "replace").strip()
    if field := _APIS[source.type].id_field:
        document = _decode_body(source, body)
        first = document[0] if isinstance(document, list) and document else document
        commit = first.get(field) if isinstance(first, dict) else None
    if isinstance(commit, str) and is_commit(commit):
        return commit
    raise ResolutionError(Reason.NOT_FOUND, f"the server of {source.uri} returns no commit for the revision")


def parse_file(source: ApiSource, body: bytes, path: str, max_bytes: int) -> tuple[bytes, str]:
    """Return the file in the response to `build_file_request`, and its path.

    If the server follows a symbolic link, the path is the target's.

    Args:
        source: The repository.
        body: The body of the response.
        path: The path of the requested file.
        max_bytes: The maximum size of the file.

    Raises:
        ResolutionError: The path is not a file, or the file is too large.
    """
    document = _decode_body(source, body)
    if isinstance(document, list):
        raise ResolutionError(Reason.NOT_FOUND, f"path {path!r} in {source.uri}: expected a file, found a directory")
    kind = document.get("type", "file") if isinstance(document, dict) else ""
    if kind == "symlink":
        raise ResolutionError(
            Reason.DENIED,
            f"path {path!r} is a symbolic link that the server does not follow; use the path of its target",
        )
    if not isinstance(document, dict) or kind != "file":
        raise ResolutionError(
            Reason.NOT_FOUND,
            f"path {path!r} in {source.uri}: expected a file, found {str(kind)[:20] or 'another response'}",
        )
    size, content, encoding = document.get("size"), document.get("content"), document.get("encoding")
    if isinstance(size, int) and size > max_bytes:
        raise _build_size_error(path, size, max_bytes)
    if encoding == "none":  # GitHub's form for files above the limit of its API
        message = f"file {path!r} is larger than the API of the server returns; use url instead of repo"
        raise ResolutionError(Reason.TOO_LARGE, message)
    if encoding != "base64" or not isinstance(content, str):
        raise ResolutionError(
            Reason.UNREACHABLE, f"the server of {source.uri} returns a response without the content of the file"
        )
    try:
        data = base64.b64decode("".join(content.split()), validate=True)
    except binascii.Error:
        raise ResolutionError(
            Reason.UNREACHABLE, f"the server of {source.uri} returns invalid base64 content"
        ) from None
    if len(data) > max_bytes:
        raise _build_size_error(path, len(data), max_bytes)
    found = document.get("path") or document.get("file_path")
    return data, found.lstrip("/") if isinstance(found, str) else path


def _build_size_error(path: str, size: int, max_bytes: int) -> ResolutionError:
    return ResolutionError(Reason.TOO_LARGE, f"file {path!r} has {size} bytes, expected at most {max_bytes}")


def _decode_body(source: ApiSource, body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except DECODE_ERRORS:
        message = (
            f"the server of {source.uri} returns a response that is not JSON; check that it is a {source.type} server"
        )
        raise ResolutionError(Reason.UNREACHABLE, message) from None


def _build_error(
    response: HttpResponse, source: ApiSource, *, has_token: bool, what: str, now: datetime
) -> ResolutionError:
    """Return the error for a status, with the meanings that differ from `build_status_error`."""
    server = f"the server of {source.uri}"
    if response.status in (404, 409, 410, 422):  # 409: an empty repository; 422: no such commit
        message = f"repository {source.uri} does not exist, requires a credential, or has no {what}"
        return ResolutionError(Reason.NOT_FOUND, message)
    if response.status in (403, 429) and response.headers.get("x-ratelimit-remaining") == "0":
        pause = parse_retry_after(response.headers.get("retry-after", ""), now)
        reset = response.headers.get("x-ratelimit-reset", "")
        if pause is None and reset.isdecimal() and len(reset) < 12:
            pause = max(0.0, float(reset) - now.timestamp())
        return ResolutionError(Reason.RATE_LIMITED, f"{server} limits the rate of requests", retry_after_seconds=pause)
    return build_status_error(response, server, has_credential=has_token, now=now)
