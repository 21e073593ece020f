"""Folder with content by digest, for use without a network.

The folder is not trusted: all content is compared with its digest before use.
"""

from __future__ import annotations

import contextlib
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

__all__ = ["ContentStore", "find_content_folder", "replace_file"]

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
            # Do not follow a link, and do not block on a pipe or a device.
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _build_error(path, error.strerror or "the file cannot be read") from None
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise _build_error(path, "expected a regular file")
            data = file.read(MAX_CONTENT_BYTES + 1)
        if not digest.matches(data):
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
        self._shrink(self._build_path(digest))
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

    def _shrink(self, newest: Path) -> None:
        files = []
        for path in self.folder.glob("sha*-*"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                files.append((path == newest, status.st_mtime_ns, path, status.st_size))
        files.sort(reverse=True)
        size_bytes = 0
        for index, (_, _, path, size) in enumerate(files):
            size_bytes += size
            if index and (index >= self._max_files or size_bytes > self._max_bytes):
                with contextlib.suppress(OSError):
                    path.unlink()


def find_content_folder(lock_file: Path) -> Path:
    """Return the default folder for the content of a lock file."""
    return Path(f"{lock_file}.d")


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically: readers find the old or the new content, also after an interruption.

    Raises:
        OSError: The file cannot be written.
    """
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(made, 0o644)
        os.replace(made, path)
    except BaseException:  # also when interrupted: no temporary file may stay
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def _build_error(path: Path, why: str) -> ResolutionError:
    return ResolutionError(Reason.DIGEST_MISMATCH, f"{path}: {why}; remove it to fetch the content again")
