"""The files of a program that its author edits, and whether they have changed."""

from __future__ import annotations

import os
import site
import sysconfig
import traceback
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeAlias

from konverge._internal.extras import source_folders
from konverge.errors import iter_causes

__all__ = [
    "FileSignature",
    "SourceWatch",
    "list_folder_files",
    "list_module_files",
    "list_traceback_files",
    "read_signatures",
]

FileSignature: TypeAlias = tuple[int, int, int, int] | None
"""Inode, device, time of change in nanoseconds, size; None for an absent file."""

MAX_FILES = 2000
"""Maximum number of files that are compared; further ones are ignored."""

_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages"})
# A file that was written so shortly before its import may have changed between the two.
_CLOCK_MARGIN_NS = 20_000_000


class SourceWatch:
    """Detects that a version of the files has replaced another one. Pure.

    A change counts when two observations in a row are equal: an editor writes a file in several steps.
    """

    def __init__(self) -> None:
        self._baseline: dict[str, FileSignature] = {}
        self._previous: dict[str, FileSignature] = {}

    @property
    def files(self) -> list[str]:
        """The observed files, sorted by their paths."""
        return sorted(self._baseline)

    def add_files(self, signatures: Mapping[str, FileSignature], *, imported_at_ns: int) -> None:
        """Observe more files.

        Args:
            signatures: The present signatures of the files; files that are observed already keep theirs.
            imported_at_ns: The time, in nanoseconds since the epoch, when the import of the files began. A file that
                is newer counts as changed once: the imported text may be the one before.
        """
        for file, signature in signatures.items():
            if file not in self._baseline and len(self._baseline) < MAX_FILES:
                is_newer = signature is not None and signature[2] > imported_at_ns - _CLOCK_MARGIN_NS
                self._baseline[file] = None if is_newer else signature

    def observe(self, signatures: Mapping[str, FileSignature]) -> list[str]:
        """Return the changed files of a new version, once; empty without one."""
        present = {file: signatures.get(file) for file in self._baseline}
        previous, self._previous = self._previous, present
        if present == self._baseline or present != previous:
            return []
        changed = [file for file, signature in present.items() if signature != self._baseline[file]]
        self._baseline = present
        return changed


def read_signatures(files: Iterable[str]) -> dict[str, FileSignature]:
    """Return the signatures of files."""
    return {file: _read_signature(file) for file in files}


def _read_signature(file: str) -> FileSignature:
    try:
        status = os.stat(file)
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_dev, status.st_mtime_ns, status.st_size


def list_module_files(modules: Iterable[object]) -> list[str]:
    """Return the files of imported modules, without those of Python, of installed packages and of konverge."""
    files = {file for module in modules if isinstance(file := getattr(module, "__file__", None), str)}
    return sorted(file for file in map(os.path.abspath, files) if _is_author_file(file))[:MAX_FILES]


def list_traceback_files(error: BaseException) -> list[str]:
    """Return the files that an error of an import names: those of its frames, and that of a syntax error."""
    files: set[str] = set()
    for cause in iter_causes(error):
        files.update(frame.filename for frame in traceback.extract_tb(cause.__traceback__))
        if isinstance(cause, SyntaxError) and cause.filename:
            files.add(cause.filename)
    return sorted(file for file in map(os.path.abspath, files) if _is_author_file(file))


def list_folder_files(folder: Path) -> list[str]:
    """Return the Python files below a folder, without hidden folders, environments and caches."""
    files: list[str] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(Path(place, name)))
        files += (os.path.join(place, name) for name in sorted(names) if name.endswith(".py"))
        if len(files) >= MAX_FILES:
            break
    return files[:MAX_FILES]


def _is_skipped(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name in _SKIPPED_FOLDERS or (folder / "pyvenv.cfg").exists()


def _is_author_file(file: str) -> bool:
    return not file.startswith(_list_installed_folders()) and os.path.exists(file)


@cache
def _list_installed_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names} | {*site.getsitepackages(), site.getusersitepackages()}
    folders.update(source_folders())
    return tuple(f"{os.path.abspath(folder)}{os.sep}" for folder in sorted(folders))
