"""Access to a repository with git in a private folder: references, a commit without its files, one file."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from konverge._internal.cancellation import await_shielded
from konverge._internal.suggestions import closest_match
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.fetch_progress import FetchProgress
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolvers.git import commands
from konverge_resolution._internal.resolvers.git.command_output import (
    COMMIT_BYTES,
    CommitFile,
    MissingFileError,
    TreeEntry,
    build_batch_input,
    build_link_input,
    find_folder,
    find_submodule,
    parse_batch,
    parse_definition_files,
    parse_entries,
    parse_link,
    parse_names,
)
from konverge_resolution._internal.resolvers.git.commands import GitConnection
from konverge_resolution._internal.resolvers.git.failures import is_not_git_server, is_refusing_objects, parse_failure
from konverge_resolution._internal.resolvers.git.fetch_meter import meter_folder
from konverge_resolution._internal.resolvers.git.process_runner import ProcessLimits, ProcessResult, run_process
from konverge_resolution._internal.resolvers.git.revisions import (
    build_not_found_error,
    find_commit,
    find_highest_tag,
    find_short_commit,
    is_name,
    is_short_commit,
    is_version_range,
    list_candidates,
    parse_references,
)

__all__ = ["Repository", "RepositoryLimits", "check_git"]

_MEMORY_FOR_REFERENCES = 256 << 20  # a million of them take 150 MB
_MEMORY_FOR_VERSION = 256 << 20
_REFERENCES_BYTES = 64 * 1024
_TAGS_BYTES = 4 << 20
_COMMITS_BYTES = 32 << 20
_LIST_BYTES = 8 << 20
_HEADERS_BYTES = 4 * 1024
_NAMES_BYTES = 64 * 1024
_ONE_FILE_FACTOR = 4  # space for one packed file, its index and the links that lead to it
_SMALL_FILES = 4 << 20
_MAX_LINKS = 200  # git itself follows 40; a link with .. in its target takes several steps
_MIN_VERSION = (2, 37)
_VERSION = re.compile(r"git version (\d+)\.(\d+)")
_NO_SHELL_LIMIT, _NO_PROGRAM = 125, 127
_NO_COMMIT = "f" * 40
_PHASES = {
    "ls-remote": "listing references of",
    "fetch": "fetching a commit from",
    "cat-file": "fetching a file from",
    "ls-tree": "listing directories of",
}
"""Phases by subcommand of git."""


async def check_git(folder: Path) -> None:
    """Refuse a git version that would resolve the host again instead of using the checked addresses.

    Raises:
        ResolutionError: ``Internal``: there is no git, or it is too old.
    """
    limits = ProcessLimits(_MEMORY_FOR_VERSION, _SMALL_FILES, _HEADERS_BYTES)
    nothing = {"PATH": commands.get_program_path()}
    finished = await run_process(commands.git_version(), environment=nothing, folder=folder, limits=limits)
    found = _VERSION.match(finished.output.decode("utf-8", "replace"))
    if found is None or (int(found[1]), int(found[2])) < _MIN_VERSION:
        what = f"{found[1]}.{found[2]}" if found else f"none (status {finished.status})"
        raise ResolutionError(
            Reason.INTERNAL, f"git: expected version {_MIN_VERSION[0]}.{_MIN_VERSION[1]} or newer, found {what}"
        )


@dataclass(frozen=True, slots=True)
class RepositoryLimits:
    """Limits of git for one repository.

    Args:
        repository_bytes: Maximum size of fetches in bytes.
        memory_bytes: Memory of each process in bytes.
        wait_until_exceeded: Waits until all processes together exceed their limit and the process with this id must
            end; see `run_process`.
    """

    repository_bytes: int
    memory_bytes: int
    wait_until_exceeded: Callable[[int], Coroutine[Any, Any, None]]


class Repository:
    """Remote repository, with the objects that were fetched into one folder.

    Args:
        connection: The connection to the repository.
        folder: A private folder, prepared with `prepare`.
        limits: The limits of git.
        progress: Receives the phases.
    """

    def __init__(
        self, connection: GitConnection, folder: Path, limits: RepositoryLimits, progress: FetchProgress
    ) -> None:
        self._connection = connection
        self._progress = progress
        self._folder = folder
        self._limits = limits

    async def prepare(self, certificates: str) -> None:
        """Write keys and certificates to files that only their owner can read."""
        credential = self._connection.credential
        secrets = {
            commands.KEY: credential.private_key,
            commands.KNOWN_HOSTS: credential.known_hosts,
            commands.CERTIFICATES: certificates.encode(),
        }
        await _write_in_thread(_write_private, self._folder, secrets)

    async def resolve_commit(self, revision: str) -> str:
        """Return the commit of a branch, a tag, a reference, the beginning of a commit id, or a range of versions.

        Raises:
            ResolutionError: There is no such revision, or the repository cannot be read.
        """
        if is_name(revision):
            references = await self._read_references(commands.ls_remote(list_candidates(revision)), _REFERENCES_BYTES)
            if (found := find_commit(revision, references)) is not None:
                return found
        if is_version_range(revision):
            tags = await self._read_references(commands.list_tags(), _TAGS_BYTES)
            # The server chooses the number of tags; the comparison of thousands of versions takes a while.
            if (highest := await asyncio.to_thread(find_highest_tag, revision, tags)) is not None:
                return highest[1]
        available = await self._list_references()
        if not available:
            await self._check_protocol()
        if is_short_commit(revision) and available:
            commits = await self._list_commits(next(iter(available.values())))
            if (found := find_short_commit(revision, commits)) is not None:
                return found
        raise build_not_found_error(revision, self._uri, available)

    async def _read_references(self, command: Sequence[str], output_bytes: int) -> Mapping[str, str]:
        finished = await self._run(command, output_bytes, _SMALL_FILES, memory_bytes=_MEMORY_FOR_REFERENCES)
        if finished.status:
            raise self._build_error(finished)
        return parse_references(finished.output)

    async def _list_commits(self, example: str) -> bytes:
        """Return the ids of all commits of branches and tags, one per line: servers find only whole ids.

        Args:
            example: One of the ids; its length determines the hash of the repository.

        Raises:
            ResolutionError: ``TooLarge``: there are too many commits.
        """
        files = commands.build_repository_files(example, is_filtered=True)
        await _write_in_thread(_make_repository, self._folder / commands.REPOSITORY, files)
        await self._run_history_command(commands.fetch_history(), _HEADERS_BYTES)
        return await self._run_history_command(commands.list_commits(), _COMMITS_BYTES)

    async def _run_history_command(self, command: Sequence[str], output_bytes: int) -> bytes:
        finished = await self._run(command, output_bytes, self._limits.repository_bytes)
        if finished.status:
            raise self._build_error(finished)
        return finished.output

    async def list_files(self, commit: str) -> Mapping[str, str]:
        """Return the ids of the files of a commit that can be definitions, by path; their content is not fetched.

        Raises:
            ResolutionError: There is no such commit, or it has too many files.
        """
        await self._fetch(commit, is_filtered=True)
        finished = await self._run(commands.list_files(commit), _LIST_BYTES, _SMALL_FILES)
        if finished.status:
            raise self._build_error(finished)
        return parse_definition_files(finished.output)

    async def _list_references(self) -> Mapping[str, str]:
        """Return the first of all branches and tags for a message; none if they cannot be read."""
        command = commands.list_references()
        finished = await self._run(command, _REFERENCES_BYTES, _SMALL_FILES, memory_bytes=_MEMORY_FOR_REFERENCES)
        return parse_references(finished.output)

    async def read_file(self, commit: str, path: str, *, max_bytes: int) -> CommitFile:
        """Return a file of a commit as it is stored, after its symbolic links, without filters or conversions.

        Args:
            commit: The id of the commit, or of a tag of it.
            path: The path of the file.
            max_bytes: The maximum size of the file.

        Raises:
            ResolutionError: There is no such file, or it cannot be fetched.
        """
        is_filtered = True
        await self._fetch(commit, is_filtered=True)
        finished, found = await self._read_batch(commit, path, max_bytes, is_filtered=True)
        if found is None and is_refusing_objects(finished.errors):
            # The server filters, but sends objects by reference only (protocol 0): fetch all of them, within the limit.
            is_filtered = False
            await self._fetch(commit, is_filtered=False)
            finished, found = await self._read_batch(commit, path, max_bytes, is_filtered=False)
        if found is None:
            raise self._build_error(finished, path)
        return replace(found, path=await self._resolve_links(found.commit, path, is_filtered=is_filtered))

    async def _resolve_links(self, commit: str, path: str, *, is_filtered: bool) -> str:
        """Return the path of a file without symbolic links; one listing is enough where there are none.

        Raises:
            ResolutionError: ``Denied``: a link cannot be followed here in the way git has followed it.
        """
        done: list[str] = []
        left = path.split("/")
        for _ in range(_MAX_LINKS):
            while left and left[0] in ("", ".", ".."):
                if left.pop(0) == ".." and done:
                    done.pop()
            if not left:
                break
            # Up to the next .. only: what is above a link's target is not what is above the link.
            end = next((place for place, part in enumerate(left) if part in (".", "..")), len(left))
            link = await self._find_first_link(commit, "/".join((*done, *left[:end])))
            if link is None:
                done, left = [*done, *left[:end]], left[end:]
                continue
            *folder, _name = link[0].split("/")
            target = await self._read_link(link[1], is_filtered=is_filtered)
            if target is None or target.startswith("/"):
                break
            left = [*target.split("/"), *left[len(folder) + 1 - len(done) :]]
            done = folder
        if left or not done:
            raise _build_link_error(path, commit)
        return "/".join(done)

    async def _find_first_link(self, commit: str, path: str) -> tuple[str, str] | None:
        """Return the path and the id of the first symbolic link on the way to a path; None without one.

        Raises:
            ResolutionError: ``Denied``: the tree has no such link.
        """
        entries = await self._list_entries(commit, path)
        if path not in entries:  # a link on the way is not a directory, so git does not descend into it
            parts = path.split("/")
            leading = ("/".join(parts[:number]) for number in range(1, len(parts)))
            path = next((each for each in leading if each not in entries), path)
            entries = await self._list_entries(commit, path)
            if path not in entries or not entries[path].is_link:
                raise _build_link_error(path, commit)
        return (path, entries[path].id) if entries[path].is_link else None

    async def _list_entries(self, commit: str, path: str) -> Mapping[str, TreeEntry]:
        return parse_entries((await self._run(commands.ls_entry(commit, path), _NAMES_BYTES, _SMALL_FILES)).output)

    async def _read_link(self, link: str, *, is_filtered: bool) -> str | None:
        input_file = self._folder / commands.INPUT
        await _write_in_thread(input_file.write_bytes, build_link_input(link))
        read = await self._run(
            commands.cat_file(), _NAMES_BYTES, _SMALL_FILES, is_filtered=is_filtered, input_path=str(input_file)
        )
        return parse_link(read.output)

    async def _check_protocol(self) -> None:
        """Refuse a server without git's protocol, after it listed no reference.

        ``ls-remote`` reads a page of HTML as an empty list of references; ``fetch`` does not.
        """
        finished = await self._run_fetch(_NO_COMMIT, is_filtered=True)
        if is_not_git_server(finished.errors):
            raise self._build_error(finished)

    async def _fetch(self, commit: str, *, is_filtered: bool) -> None:
        finished = await self._run_fetch(commit, is_filtered=is_filtered)
        if finished.status:
            raise self._build_error(finished, commit=commit)

    async def _run_fetch(self, commit: str, *, is_filtered: bool) -> ProcessResult:
        files = commands.build_repository_files(commit, is_filtered=is_filtered)
        await _write_in_thread(_make_repository, self._folder / commands.REPOSITORY, files)
        arguments = commands.fetch(commit, is_filtered=is_filtered)
        return await self._run(arguments, _HEADERS_BYTES, self._limits.repository_bytes, is_filtered=is_filtered)

    async def _read_batch(
        self, commit: str, path: str, max_bytes: int, *, is_filtered: bool
    ) -> tuple[ProcessResult, CommitFile | None]:
        input_file = self._folder / commands.INPUT
        await _write_in_thread(input_file.write_bytes, build_batch_input(commit, path))
        file_bytes = min(self._limits.repository_bytes, max(_SMALL_FILES, _ONE_FILE_FACTOR * max_bytes))
        finished = await self._run(
            commands.cat_file(),
            COMMIT_BYTES + max_bytes + _HEADERS_BYTES,
            file_bytes,
            is_filtered=is_filtered,
            input_path=str(input_file),
        )
        try:
            return finished, parse_batch(finished.output, commit=commit, path=path, max_bytes=max_bytes)
        except ResolutionError as error:
            if error.reason is Reason.NOT_FOUND:
                raise await self._explain_missing(commit, path, error) from None
            raise

    async def _explain_missing(self, commit: str, path: str, error: ResolutionError) -> ResolutionError:
        """Explain a missing file: it is in a submodule, or the name has a similar one."""
        finished = await self._run(commands.ls_tree(commit, path), _NAMES_BYTES, _SMALL_FILES)
        if (submodule := find_submodule(finished.output)) is not None:
            message = f"path {path!r} is in submodule {submodule!r} at {commit}; use the address of that repository"
            return ResolutionError(Reason.NOT_FOUND, message)
        if not isinstance(error, MissingFileError):
            return error
        folder = find_folder(finished.output)
        listed = await self._run(commands.list_folder(commit, folder), _NAMES_BYTES, _SMALL_FILES)
        above = f"{folder}/" if folder else ""
        near = closest_match(path.removeprefix(above).partition("/")[0], parse_names(listed.output))
        message = f"file {path!r} does not exist in repository {self._uri} at {commit}"
        return ResolutionError(Reason.NOT_FOUND, message + (f"; did you mean {above + near!r}?" if near else ""))

    async def _run(
        self,
        arguments: Sequence[str],
        output_bytes: int,
        file_bytes: int,
        *,
        is_filtered: bool = True,
        input_path: str = "/dev/null",
        memory_bytes: int | None = None,
    ) -> ProcessResult:
        memory = self._limits.memory_bytes
        self._progress.enter(_PHASES.get(arguments[1], "reading"), self._connection.remote.origin)
        async with meter_folder(self._folder, self._progress):
            return await run_process(
                arguments,
                environment=commands.build_environment(self._connection, self._folder, is_filtered=is_filtered),
                folder=self._folder,
                limits=ProcessLimits(min(memory, memory_bytes or memory), file_bytes, output_bytes),
                input_path=input_path,
                wait_until_exceeded=self._limits.wait_until_exceeded,
            )

    @property
    def _uri(self) -> str:
        return self._connection.remote.uri

    def _build_error(self, finished: ProcessResult, path: str = "", commit: str = "") -> ResolutionError:
        if finished.status in (_NO_SHELL_LIMIT, _NO_PROGRAM):
            message = "git cannot be started with its resource limits"
            return ResolutionError(Reason.INTERNAL, message)
        if finished.is_out_of_memory:
            message = "uses the most memory while all git processes exceed their limit (setting 'max-memory-bytes')"
            return ResolutionError(Reason.TOO_LARGE, f"repository {self._uri} {message}")
        if finished.is_truncated:
            return ResolutionError(
                Reason.TOO_LARGE, f"repository {self._uri} sends more output than the request allows"
            )
        return parse_failure(
            finished.errors,
            uri=self._uri,
            has_credential=bool(self._connection.credential),
            status=finished.status,
            path=path,
            commit=commit,
        )


def _build_link_error(path: str, commit: str) -> ResolutionError:
    message = f"path {path!r} at {commit} leads through symbolic links that cannot be resolved"
    return ResolutionError(Reason.DENIED, message)


async def _write_in_thread(write: Callable[..., object], *given: object) -> None:
    """Write files in a thread and await it even if cancelled: a late write would outlive the folder."""
    await await_shielded(asyncio.to_thread(write, *given))


def _write_private(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        if data:
            path = folder / name
            path.touch(mode=0o600)
            path.write_bytes(data)


def _make_repository(folder: Path, files: dict[str, str]) -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
