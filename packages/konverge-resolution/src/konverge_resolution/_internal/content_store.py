"""Folder with content by digest, for use without a network.

The folder is not trusted: all content is compared with its digest before use. It has no limit of its own: it has what
its lock files name, which have limits (`lock_file`), and removes nothing that one of them may name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES

__all__ = [
    "ContentStore",
    "find_content_folder",
    "read_regular_file",
    "remove_leftovers",
    "replace_file",
    "shrink_folder",
]

_TEMPORARY = ".konverge-tmp"
"""End of the names of temporary files; no other file of a folder may have it."""

_NAME = re.compile(r"sha256-[0-9a-f]{64}|sha512-[0-9a-f]{128}")


class ContentStore:
    """Content in files that are named after their digests. Its methods block on the file system.

    Args:
        folder: The folder; created when the first content is added.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._has_leftovers = True

    def get(self, digest: Digest) -> bytes | None:
        """Return the content with a digest; None if the folder does not have it.

        Raises:
            ResolutionError: ``DigestMismatch``: the file of that digest has other content.
        """
        path = self._build_path(digest)
        try:
            data = read_regular_file(path, MAX_CONTENT_BYTES)
        except OSError as error:
            raise _build_error(path, error.strerror or "the file cannot be read") from None
        if data is not None and not digest.matches(data):
            raise _build_error(path, "the content does not match the digest in the name")
        return data

    def add(self, data: bytes) -> Digest:
        """Store content and return its digest.

        Raises:
            OSError: The file cannot be written.
        """
        digest = Digest.of(data)
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._has_leftovers:
            remove_leftovers(self.folder)
            self._has_leftovers = False
        replace_file(self._build_path(digest), data)
        return digest

    def keep_only(self, digests: Iterable[Digest]) -> None:
        """Remove the content of every other digest, and no other file.

        Args:
            digests: The digests of the content that stays.
        """
        kept = {self._build_path(digest) for digest in digests}
        for path in self.folder.glob("sha*-*"):
            if _NAME.fullmatch(path.name) and path not in kept:
                with contextlib.suppress(OSError):  # a file that cannot be removed is harmless
                    path.unlink()

    def _build_path(self, digest: Digest) -> Path:
        return self.folder / f"{digest.algorithm}-{digest.hex}"


def find_content_folder(lock_file: Path) -> Path:
    """Return the default folder for the content of a lock file."""
    return Path(f"{lock_file}.d")


def read_regular_file(path: Path, max_bytes: int) -> bytes | None:
    """Return the content of a file, None without one; of a longer file, one byte more than the limit.

    Args:
        path: The file. A link is not followed, and a pipe or a device is not waited for.
        max_bytes: The maximum size.

    Raises:
        OSError: The file cannot be read, or is not a regular file.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "expected a regular file")
        return file.read(max_bytes + 1)


def shrink_folder(folder: Path, *, max_bytes: int, max_files: int) -> None:
    """Remove the files with the oldest modification time until the rest is within the limits.

    Args:
        folder: The folder; all its files may be removed.
        max_bytes: Maximum size of the files together.
        max_files: Maximum number of the files.
    """
    files = []
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            status = path.lstat()
            files.append((status.st_mtime_ns, path, status.st_size))
    files.sort(reverse=True)
    size_bytes = 0
    for index, (_, path, size) in enumerate(files):
        size_bytes += size
        if index >= max_files or size_bytes > max_bytes:
            with contextlib.suppress(OSError):
                path.unlink()


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file atomically: readers find the old or the new content, also after an interruption.

    The new content is in a temporary file first. If the process is killed, it stays until `remove_leftovers`.

    Args:
        path: The file.
        data: Its new content.
        mode: Its permissions.

    Raises:
        OSError: The file cannot be written.
    """
    handle, made = _create_locked_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.chmod(made, mode)
            os.replace(made, path)
    except BaseException:  # also when interrupted: no temporary file may stay
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove the temporary files of `replace_file` whose processes were killed; those of running processes are locked.

    Args:
        folder: The folder.
        name: The name of the file that was replaced; empty for all files.
    """
    for path in folder.glob(f".{glob.escape(name) or '*'}.*{_TEMPORARY}"):
        with contextlib.suppress(OSError):  # locked, removed in the meantime, or of another user
            opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(opened)


def _create_locked_file(path: Path) -> tuple[int, str]:
    """Return a temporary file beside another one, open and locked until it is closed, and its path."""
    while True:
        handle, made = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_TEMPORARY, dir=path.parent)
        with contextlib.suppress(OSError):  # a file system without locks: then its leftovers stay
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, made
        os.close(handle)  # another process found it before it was locked, and removed it


def _build_error(path: Path, why: str) -> ResolutionError:
    return ResolutionError(Reason.DIGEST_MISMATCH, f"{path}: {why}; remove it to fetch the content again")
