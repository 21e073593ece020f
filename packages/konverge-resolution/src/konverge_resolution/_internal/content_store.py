"""Folder with content by digest, for use without a network.

The folder is not trusted: all content is compared with its digest before use.
"""

from __future__ import annotations

import contextlib
import errno
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

__all__ = ["ContentStore", "find_content_folder", "read_regular_file", "replace_file", "shrink_folder"]

_NAME = re.compile(r"sha256-[0-9a-f]{64}|sha512-[0-9a-f]{128}")


class ContentStore:
    """Content in files that are named after their digests. Its methods block on the file system.

    Args:
        folder: The folder; created when the first content is added.
        max_bytes: Maximum size in bytes; the files with the oldest modification time are removed first.
        max_files: Maximum number of files.
    """

    def __init__(self, folder: Path, *, max_bytes: int = 256 << 20, max_files: int = 4096) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files

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
        replace_file(self._build_path(digest), data)
        newest = self._build_path(digest)
        shrink_folder(self.folder, "sha*-*", newest=newest, max_bytes=self._max_bytes, max_files=self._max_files)
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


def shrink_folder(folder: Path, pattern: str, *, newest: Path | None = None, max_bytes: int, max_files: int) -> None:
    """Remove the files with the oldest modification time until the rest is within the limits.

    Args:
        folder: The folder.
        pattern: The names of the files that may be removed.
        newest: A file that stays in any case.
        max_bytes: Maximum size of the files together.
        max_files: Maximum number of the files.
    """
    files = []
    for path in folder.glob(pattern):
        with contextlib.suppress(OSError):
            status = path.lstat()
            files.append((path == newest, status.st_mtime_ns, path, status.st_size))
    files.sort(reverse=True)
    size_bytes = 0
    for index, (is_newest, _, path, size) in enumerate(files):
        size_bytes += size
        if not is_newest and (index >= max_files or size_bytes > max_bytes):
            with contextlib.suppress(OSError):
                path.unlink()


def replace_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file atomically: readers find the old or the new content, also after an interruption.

    Args:
        path: The file.
        data: Its new content.
        mode: Its permissions.

    Raises:
        OSError: The file cannot be written.
    """
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(made, mode)
        os.replace(made, path)
    except BaseException:  # also when interrupted: no temporary file may stay
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def _build_error(path: Path, why: str) -> ResolutionError:
    return ResolutionError(Reason.DIGEST_MISMATCH, f"{path}: {why}; remove it to fetch the content again")
