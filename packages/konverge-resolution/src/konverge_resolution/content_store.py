"""A folder with content by its digest: what was fetched once is there without a network.

It may be anybody's: nothing that it has is taken before it was compared with its digest.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.reference import Digest
from konverge_resolution.resolved_content import MAX_CONTENT_BYTES

__all__ = ["ContentStore", "find_content_folder", "replace_file"]

_NAME = re.compile(r"sha256-[0-9a-f]{64}|sha512-[0-9a-f]{128}")


class ContentStore:
    """Content in files, each called by its digest. Its methods block for as long as the file system takes.

    Args:
        folder: Where; made when something is put into it.
        max_bytes: How much is kept; what was written longest ago goes first.
        max_files: How many.
    """

    def __init__(self, folder: Path, *, max_bytes: int = 256 << 20, max_files: int = 4096) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files

    def get(self, digest: Digest) -> bytes | None:
        """The content of that digest, None when it is not here.

        Raises:
            ResolutionError: ``DigestMismatch``: what is here under its name is something else.
        """
        path = self._build_path(digest)
        try:
            # A link, a pipe or a device would be read from elsewhere, or for ever.
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _build_error(path, error.strerror or "it cannot be read") from None
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise _build_error(path, "it is no file")
            data = file.read(MAX_CONTENT_BYTES + 1)
        if not digest.matches(data):
            raise _build_error(path, "its content is not what its name says")
        return data

    def add(self, data: bytes) -> Digest:
        """Keep content; answers its digest.

        Raises:
            OSError: It cannot be written.
        """
        digest = Digest.of(data)
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._build_path(digest), data)
        self._shrink(self._build_path(digest))
        return digest

    def keep_only(self, digests: Iterable[Digest]) -> None:
        """Remove the content of every other digest, and no other file.

        Args:
            digests: Of what stays.
        """
        kept = {self._build_path(digest) for digest in digests}
        for path in self.folder.glob("sha*-*"):
            if _NAME.fullmatch(path.name) and path not in kept:
                with contextlib.suppress(OSError):  # what cannot be removed does no harm
                    path.unlink()

    def _build_path(self, digest: Digest) -> Path:
        return self.folder / f"{digest.algorithm}-{digest.hex}"

    def _shrink(self, newest: Path) -> None:
        found = []
        for path in self.folder.glob("sha*-*"):
            with contextlib.suppress(OSError):
                seen = path.lstat()
                found.append((path == newest, seen.st_mtime_ns, path, seen.st_size))
        found.sort(reverse=True)
        size_bytes = 0
        for index, (_, _, path, size) in enumerate(found):
            size_bytes += size
            if index and (index >= self._max_files or size_bytes > self._max_bytes):
                with contextlib.suppress(OSError):
                    path.unlink()


def find_content_folder(lock_file: Path) -> Path:
    """The folder of a lock file's content, unless somebody names another one."""
    return Path(f"{lock_file}.d")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file as a whole: whoever reads it meanwhile, or after an interruption, finds the old content or the new.

    Raises:
        OSError: It cannot be written.
    """
    handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(made, 0o644)
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(made)
        raise


def _build_error(path: Path, why: str) -> ResolutionError:
    return ResolutionError(Reason.DIGEST_MISMATCH, f"{path}: {why}; remove it, and it is fetched again")
