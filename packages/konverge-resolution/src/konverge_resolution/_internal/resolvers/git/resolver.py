"""Resolver ``git``: selects git or the server's API, and builds the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from konverge._internal.suggestions import closest_match
from konverge_resolution._internal.credential_hosts import check_host, check_tls
from konverge_resolution._internal.definition_listing import ListedDefinition
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import build_http_client, parse_proxy
from konverge_resolution._internal.network import GuardedHttp, HttpResponse, Proxy
from konverge_resolution._internal.parameter_checks import build_param_error, name_params_in_errors
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest, Parameters
from konverge_resolution._internal.relative_references import join_path
from konverge_resolution._internal.resolved_content import Provenance, ResolvedContent
from konverge_resolution._internal.resolver import FetchRequest, Parameter, Setting
from konverge_resolution._internal.resolvers.git import scm
from konverge_resolution._internal.resolvers.git.command_output import CommitFile
from konverge_resolution._internal.resolvers.git.commands import GitConnection
from konverge_resolution._internal.resolvers.git.credentials import (
    GitCredential,
    build_ssh_credential,
    build_token_credential,
)
from konverge_resolution._internal.resolvers.git.memory_watcher import MemoryWatcher
from konverge_resolution._internal.resolvers.git.parameters import (
    PARAMETERS,
    SETTINGS,
    ApiSource,
    get_max_memory_bytes,
    get_max_repository_bytes,
    parse_target,
    spell_parameter,
    validate_listing_params,
    validate_params,
)
from konverge_resolution._internal.resolvers.git.remotes import Remote
from konverge_resolution._internal.resolvers.git.repository import Repository, RepositoryLimits, check_git
from konverge_resolution._internal.resolvers.git.revisions import is_commit
from konverge_resolution._internal.user_logins import (
    find_user_login,
    name_user_login_in_errors,
    recall_user_login,
)

__all__ = ["GitResolver"]

T = TypeVar("T")

_TOKEN_FILE_BYTES = 64 * 1024
_HIDDEN = (Reason.AUTHENTICATION_REQUIRED, Reason.NOT_FOUND)
"""Reasons of an API for a repository that requires a token."""


class GitResolver:
    """Fetches one file of a repository: with git but no clone, or through the API of its server.

    Attributes:
        name: ``git``.
        parameters: Its parameters.
        settings: Its settings.
    """

    name = "git"
    parameters: Mapping[str, Parameter] = PARAMETERS
    settings: Mapping[str, Setting] = SETTINGS

    def __init__(self) -> None:
        self._has_git = False
        self._memory = MemoryWatcher()

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the normalized parameters with their defaults.

        Raises:
            ResolutionError: ``InvalidParams`` with the name of the parameter.
        """
        return validate_params(params, settings)

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        """Return the repository, for example ``git+https://example.com/platform/boxes``."""
        return parse_target(params, settings).source.uri

    def is_pinned(self, params: Parameters) -> bool:
        """Tell whether the revision is the id of a commit."""
        return is_commit(str(params["revision"]))

    def build_provenance(
        self, params: Parameters, settings: Mapping[str, str], digest: Digest, recorded: Provenance
    ) -> Provenance:
        """Return the repository, the commit and the file."""
        found = parse_target(params, settings)
        return Provenance(found.source.uri, _build_digest(found.revision), found.path)

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        """Return the parameters of another file of the same commit.

        Raises:
            ResolutionError: ``InvalidParams``: the path leaves the repository.
        """
        return {**params, "pathInRepo": join_path(str(params["pathInRepo"]), path)}

    def validate_listing(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        """Return the normalized parameters of a repository, without a file.

        Raises:
            ResolutionError: As `validate`; ``InvalidParams``: a file is named, or the server's API is used.
        """
        return validate_listing_params(params, settings)

    async def list_definitions(self, fetch: FetchRequest) -> Sequence[ListedDefinition]:
        """Return the files of a revision with the extension of a definition, sorted by path.

        Raises:
            ResolutionError: The repository or the revision does not exist or cannot be read.
        """
        found = parse_target(fetch.params, fetch.settings)
        assert isinstance(found.source, Remote), "a list by the server's API is refused"

        async def list_files(repository: Repository) -> tuple[str, Mapping[str, str]]:
            is_pinned = is_commit(found.revision)
            commit = found.revision if is_pinned else await repository.resolve_commit(found.revision)
            return commit, await repository.list_files(commit)

        commit, files = await self._use_repository(fetch, found.source, list_files)
        (algorithm,) = _build_digest(commit)
        return [
            ListedDefinition({"pathInRepo": path}, None, f"{algorithm}:{id_}") for path, id_ in sorted(files.items())
        ]

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        """Return the parameters with the current commit of the revision: one ``ls-remote``, or one API request.

        Raises:
            ResolutionError: There is no such revision, or the repository cannot be read.
        """
        if self.is_pinned(fetch.params):
            return fetch.params
        found = parse_target(fetch.params, fetch.settings)
        if isinstance(found.source, ApiSource):
            commit = await _fetch_api_commit(fetch, found.source, found.revision)
        else:
            commit = await self._use_repository(
                fetch, found.source, lambda repository: repository.resolve_commit(found.revision)
            )
        return {**fetch.params, "revision": commit}

    def spell_parameter(self, name: str, value: str) -> Sequence[str]:
        """Return the spellings of a value, as policies compare it."""
        return spell_parameter(name, value)

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        """Fetch the file. A cancelled call first ends git and its child processes and removes the folder.

        Raises:
            ResolutionError: There is no such file, or it cannot be fetched.
        """
        found = parse_target(fetch.params, fetch.settings)
        is_pinned = self.is_pinned(fetch.params)
        if isinstance(found.source, ApiSource):
            commit = found.revision if is_pinned else await _fetch_api_commit(fetch, found.source, found.revision)
            data, path, place = await _fetch_api_file(fetch, found.source, commit, found.path)
            repository = scm.find_repository(found.source, place) if place else found.source
            uri = place if repository is None else repository.uri
            message = {} if repository is None else {"org": repository.org, "repo": repository.repo}
        else:

            async def read_file(repository: Repository) -> CommitFile:
                commit = found.revision if is_pinned else await repository.resolve_commit(found.revision)
                return await repository.read_file(commit, found.path, max_bytes=fetch.max_bytes)

            file = await self._use_repository(fetch, found.source, read_file)
            # The requested id can be that of a tag object; the record has the commit.
            data, commit, path = file.data, file.commit, file.path
            uri, message = found.source.uri, {"url": found.source.url}
        return ResolvedContent(
            data=data,
            source=Provenance(uri, _build_digest(commit), path),
            annotations={"revision": commit, "path": found.path, **message},
            pinned={**fetch.params, "revision": commit},
            found_at="" if uri == found.source.uri else uri,
            found_params={} if path == found.path else {"pathInRepo": path},
        )

    async def _use_repository(
        self, fetch: FetchRequest, remote: Remote, work: Callable[[Repository], Awaitable[T]]
    ) -> T:
        """Work with a repository; again with a login of the user if it requires one and the reference names none."""
        credential = await _read_credential(fetch, remote)
        with name_user_login_in_errors(fetch, remote.uri):
            try:
                async with self._open_repository(fetch, remote, credential) as repository:
                    return await work(repository)
            except ResolutionError as error:
                if credential or remote.scheme == "ssh" or error.reason is not Reason.AUTHENTICATION_REQUIRED:
                    raise
                login = await find_user_login(fetch, remote, lambda users: users.find_git_login(remote.uri))
                if login is None:
                    raise
            credential = build_token_credential(login.user, login.password)
            async with self._open_repository(fetch, remote, credential) as repository:
                return await work(repository)

    @asynccontextmanager
    async def _open_repository(
        self, fetch: FetchRequest, remote: Remote, credential: GitCredential
    ) -> AsyncIterator[Repository]:
        if fetch.services.addresses is None:
            raise ResolutionError(Reason.INTERNAL, "programs that connect by themselves have no addresses here")
        proxy = _find_proxy(fetch, remote)
        places = [(remote.host, remote.port)] if proxy is None or remote.is_address else []
        places += [proxy.address] if proxy is not None else []  # names are the proxy's business, addresses are not
        if credential.ssh is not None:
            places = [(credential.ssh.host, credential.ssh.port)]
        fetch.services.progress.enter("resolving the name of", remote.origin)
        addresses = [await fetch.services.addresses.resolve_permitted(*place) for place in places][-1]
        max_bytes, max_memory = get_max_repository_bytes(fetch.settings), get_max_memory_bytes(fetch.settings)
        watch = partial(self._memory.wait_until_exceeded, max_bytes=max_memory)
        # The limit of each file is the first bound; that of the folder counts what is beside the one large pack.
        async with fetch.services.workspaces.folder(max_bytes=2 * max_bytes) as folder:
            await self._check_git(folder)
            certificates = fetch.settings.get("ca-certificates", "")
            connection = GitConnection(remote, tuple(addresses), credential, bool(certificates), proxy)
            limits = RepositoryLimits(max_bytes, max_memory, watch)
            repository = Repository(connection, folder, limits, fetch.services.progress)
            await repository.prepare(certificates)
            yield repository

    async def _check_git(self, folder: Path) -> None:
        if not self._has_git:
            await check_git(folder)
            self._has_git = True


def _build_digest(commit: str) -> dict[str, str]:
    return {"sha1" if len(commit) == 40 else "sha256": commit}


async def _read_credential(fetch: FetchRequest, remote: Remote) -> GitCredential:
    params, secrets = fetch.params, fetch.services.secrets
    if "gitSSHSecret" in params:
        with name_params_in_errors("gitSSHSecret"):
            secret = await secrets.read_all(str(params["gitSSHSecret"]))
        credential = build_ssh_credential(secret)
    elif "gitToken" in params:
        name = str(params["gitToken"])
        with name_params_in_errors("gitToken", "gitTokenKey"):
            token = await secrets.read_value(name, str(params["gitTokenKey"]))
            secret = await secrets.read_all(name)
        credential = build_token_credential(str(params["gitUser"]), token)
    else:
        return await _recall_credential(fetch, remote)
    check_host(remote, secret, fetch.settings)
    return credential


async def _recall_credential(fetch: FetchRequest, remote: Remote) -> GitCredential:
    """Return the means of the user's ssh, or a login of the user that the server required before."""
    users = fetch.services.user_credentials
    if users is not None and remote.scheme == "ssh":
        return GitCredential(ssh=await users.find_ssh_access(remote.host, remote.port, remote.user))
    login = recall_user_login(fetch, remote, remote.uri)
    return GitCredential() if login is None else build_token_credential(login.user, login.password)


def _find_proxy(fetch: FetchRequest, remote: Remote) -> Proxy | None:
    """Return the proxy of the settings, otherwise that of the user's environment; None for a direct connection."""
    if remote.scheme == "ssh":
        return None
    http: GuardedHttp | None = fetch.services.http
    proxies = parse_proxy(fetch.settings) or (None if http is None else http.proxy)
    return None if proxies is None else proxies.select(remote.scheme, remote.host, remote.port)


async def _read_api_token(fetch: FetchRequest, source: ApiSource) -> str:
    """Return the token for a server: the requester's own, or the operator's for the operator's server only."""
    if "token" in fetch.params:
        name, secrets = str(fetch.params["token"]), fetch.services.secrets
        with name_params_in_errors("token", "tokenKey"):
            token = (await secrets.read_value(name, str(fetch.params["tokenKey"]))).strip()
            secret = await secrets.read_all(name)
        if not token or not token.isprintable():
            raise build_param_error("token", "expected a token in one line")
        check_host(source.server, secret, fetch.settings)
        return token
    if (login := recall_user_login(fetch, source.server, source.uri)) is not None:
        return login.password
    if not source.is_configured:
        login = await find_user_login(fetch, source.server, lambda users: users.find_git_login(source.uri))
        if login is not None:
            return login.password
        message = "parameter 'serverURL': a server other than the configured one needs a token of your own"
        raise ResolutionError(Reason.DENIED, f"{message}; name its Secret with parameter 'token'")
    path = fetch.settings.get("api-token-file", "")
    if not path:
        return ""
    check_tls(source.server, fetch.settings)
    return await asyncio.to_thread(_read_token_file, Path(path))


def _read_token_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            token = file.read(_TOKEN_FILE_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        message = f"api-token-file cannot be read: {type(error).__name__}"
        raise ResolutionError(Reason.INVALID_CONFIGURATION, message) from None
    if not token or not token.isprintable():
        raise ResolutionError(Reason.INVALID_CONFIGURATION, "api-token-file: expected a token in one line")
    return token


async def _fetch_api_commit(fetch: FetchRequest, source: ApiSource, revision: str) -> str:
    request = scm.build_commit_request(source, revision)
    message = f"revision {revision[:120]!r}"
    return scm.parse_commit(source, (await _call_api(fetch, source, request, message)).body)


async def _fetch_api_file(fetch: FetchRequest, source: ApiSource, commit: str, path: str) -> tuple[bytes, str, str]:
    """Return a file, its path on the server, and the URL of a redirect; empty without redirects."""
    request = scm.build_file_request(source, commit, path, fetch.max_bytes)
    try:
        answer = await _call_api(fetch, source, request, f"file {path!r} at {commit}")
    except ResolutionError as error:
        if error.reason is not Reason.NOT_FOUND:
            raise
        raise error.with_message(f"{error.message}{await _suggest_api_path(fetch, source, commit, path)}") from None
    data, found = scm.parse_file(source, answer.body, path, fetch.max_bytes)
    return data, found, answer.redirected_to


async def _suggest_api_path(fetch: FetchRequest, source: ApiSource, commit: str, path: str) -> str:
    """Return the end of the message about a missing file, from the names in its folder or, without one, in the root."""
    for folder in dict.fromkeys((path.rpartition("/")[0], "")):
        try:
            listed = await _call_api(fetch, source, scm.build_folder_request(source, commit, folder), "folder")
            names = scm.parse_folder(source, listed.body)
        except ResolutionError:
            continue  # the folder does not exist either, or is too large for a suggestion
        above = f"{folder}/" if folder else ""
        near = closest_match(path.removeprefix(above).partition("/")[0], names)
        return f"; did you mean {above + near!r}?" if near else ""
    return ""


async def _call_api(fetch: FetchRequest, source: ApiSource, request: scm.ApiRequest, what: str) -> HttpResponse:
    http = build_http_client(fetch, name_address=partial(scm.name_source, source))

    async def send(token: str) -> HttpResponse:
        return await scm.send_request(http, request, source, token, what=what, now=fetch.services.clock.now())

    with name_user_login_in_errors(fetch, source.uri):
        token = ""
        try:
            token = await _read_api_token(fetch, source)
            return await send(token)
        except ResolutionError as error:
            # Without a token, servers hide private repositories.
            if token or "token" in fetch.params or error.reason not in _HIDDEN:
                raise
            login = await find_user_login(fetch, source.server, lambda users: users.find_git_login(source.uri))
            if login is None:
                raise
        return await send(login.password)
