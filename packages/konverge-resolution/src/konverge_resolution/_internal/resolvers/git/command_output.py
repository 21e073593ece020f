"""Parser of the output of ``git cat-file --batch --follow-symlinks``. Pure.

Git reads from its own object store and follows symbolic links in it. It reports a link that leaves the store and reads
nothing: no path and no link of a repository reaches a file of the machine (CVE-2026-33211).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason

__all__ = [
    "COMMIT_BYTES",
    "CommitFile",
    "MissingFileError",
    "TreeEntry",
    "build_batch_input",
    "build_link_input",
    "find_folder",
    "find_submodule",
    "parse_batch",
    "parse_entries",
    "parse_link",
    "parse_names",
]

COMMIT_BYTES = 256 * 1024
"""Maximum size of a commit with its message, which precedes the file."""

_FOUND = re.compile(rb"(?P<id>[0-9a-f]{40,64}) (?P<kind>commit|blob|tree|tag) (?P<size>[0-9]{1,18})")
_FILE_MODES = (b"100644", b"100755")
_ENDINGS = (b".yaml", b".yml", b".json")
_ODD = re.compile(rb"(?P<kind>symlink|dangling|loop|notdir) (?P<size>[0-9]{1,18})")


class MissingFileError(ResolutionError):
    """Error for a path without a file, which may be a typing error."""


@dataclass(frozen=True, slots=True)
class CommitFile:
    """File of a commit.

    Args:
        commit: The id of the commit.
        data: The content of the file.
        path: The path after symbolic links.
    """

    commit: str
    data: bytes
    path: str


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """Entry of a tree.

    Args:
        is_link: Whether it is a symbolic link.
        id: The id of its object.
    """

    is_link: bool
    id: str


@dataclass(frozen=True, slots=True)
class _BatchRecord:
    kind: str
    id: str
    size: int
    rest: bytes


def build_batch_input(commit: str, path: str) -> bytes:
    """Return the input for a commit and a file. Both were validated and have no newline."""
    return f"{commit}^{{commit}}\n{commit}:{path}\n".encode()


def parse_batch(output: bytes, *, commit: str, path: str, max_bytes: int) -> CommitFile | None:
    """Parse the output for `build_batch_input`.

    Args:
        output: The output; its end may be missing.
        commit: The requested commit.
        path: The requested file.
        max_bytes: The maximum size of the file.

    Returns:
        The file; None when the output ends before it is complete.

    Raises:
        ResolutionError: There is no such file, or it must not be read.
    """
    head = _parse_record(output)
    if head is None:
        return None
    if head.kind != "commit":
        message = f"expected a commit, or a tag of one; {commit} is none in the repository"
        raise ResolutionError(Reason.NOT_FOUND, f"parameter 'revision': {message}")
    if head.size > COMMIT_BYTES:
        raise ResolutionError(Reason.TOO_LARGE, f"commit {commit} has more than {COMMIT_BYTES} bytes")
    found = _parse_record(head.rest[head.size + 1 :])
    if found is None:
        return None
    if found.kind != "blob":
        raise _build_error(found.kind, path, head.id)
    if found.size > max_bytes:
        message = f"file {path!r} has {found.size} bytes, expected at most {max_bytes}"
        raise ResolutionError(Reason.TOO_LARGE, message)
    data = found.rest[: found.size]
    return CommitFile(head.id, data, path) if len(data) == found.size else None


def parse_entries(output: bytes) -> dict[str, TreeEntry]:
    """Return the entries by path from the output of ``git ls-tree -z``.

    Args:
        output: The output.
    """
    found = {}
    for line in output.split(b"\0")[:-1]:  # the last line may be incomplete
        what, _, name = line.partition(b"\t")
        mode, _, id_ = what.split(b" ")[:3]
        found[name.decode("utf-8", "replace")] = TreeEntry(mode == b"120000", id_.decode("ascii"))
    return found


def parse_definition_files(output: bytes) -> dict[str, str]:
    """Return the ids of plain files with the extension of a definition by path, from ``git ls-tree -r -z``.

    Args:
        output: The output.
    """
    found = {}
    for line in output.split(b"\0")[:-1]:
        what, _, name = line.partition(b"\t")
        mode, _, id_ = what.split(b" ")[:3]
        if mode in _FILE_MODES and name.endswith(_ENDINGS):
            found[name.decode("utf-8", "replace")] = id_.decode("ascii")
    return found


def build_link_input(link: str) -> bytes:
    """Return the input for the target of a symbolic link.

    Args:
        link: The id of the link.
    """
    return f"{link}\n".encode()


def parse_link(output: bytes) -> str | None:
    """Parse the output for `build_link_input`: the target; None for an unreadable one."""
    found = _parse_record(output)
    if found is None or found.kind != "blob" or len(found.rest) < found.size:
        return None
    try:
        return found.rest[: found.size].decode()
    except UnicodeDecodeError:
        return None


def find_submodule(output: bytes) -> str | None:
    """Return the first submodule in the output of ``git ls-tree -z``; None without one."""
    for line in output.split(b"\0"):
        what, tab, name = line.partition(b"\t")
        if tab and what.startswith(b"160000 commit "):
            return name.decode("utf-8", "replace")
    return None


def find_folder(output: bytes) -> str:
    """Return the deepest folder in the output of ``git ls-tree -z`` for a path and its parents; empty for the root.

    Args:
        output: The output.
    """
    found = [line.partition(b"\t") for line in output.split(b"\0")]
    folders = [name.decode("utf-8", "replace") for what, _, name in found if what.startswith(b"040000 tree ")]
    return max(folders, key=len, default="")


def parse_names(output: bytes) -> list[str]:
    """Return the names in the output of ``git ls-tree -z --name-only``; the last one may be incomplete and is dropped.

    Args:
        output: The output.
    """
    return [name.decode("utf-8", "replace") for name in output.split(b"\0")[:-1]]


def _parse_record(output: bytes) -> _BatchRecord | None:
    line, newline, rest = output.partition(b"\n")
    if not newline:
        return None
    if found := _FOUND.fullmatch(line):
        return _BatchRecord(found["kind"].decode(), found["id"].decode(), int(found["size"]), rest)
    odd = _ODD.fullmatch(line)
    return _BatchRecord("missing" if odd is None else odd["kind"].decode(), "", 0, rest)


def _build_error(kind: str, path: str, commit: str) -> ResolutionError:
    match kind:
        case "tree":
            return ResolutionError(Reason.NOT_FOUND, f"path {path!r} is a directory at {commit}; expected a file")
        case "symlink":
            message = f"path {path!r} at {commit} is, or leads through, a symbolic link out of the repository"
            return ResolutionError(Reason.DENIED, message)
        case "loop":
            message = f"path {path!r} at {commit} leads through symbolic links in a circle, or too many of them"
            return ResolutionError(Reason.DENIED, message)
        case "dangling":
            message = f"path {path!r} at {commit} leads through a symbolic link to a file that does not exist"
            return ResolutionError(Reason.NOT_FOUND, message)
        case "notdir":
            return ResolutionError(Reason.NOT_FOUND, f"path {path!r}: a part before the last is a file at {commit}")
        case "missing":
            return MissingFileError(Reason.NOT_FOUND, f"file {path!r} does not exist at {commit}")
    return ResolutionError(Reason.NOT_FOUND, f"path {path!r} is a {kind} at {commit}; expected a file")
