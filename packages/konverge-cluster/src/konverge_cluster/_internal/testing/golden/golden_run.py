"""State of golden files during a test run: the running test, the mode, and the used and written files.

This module does not import pytest: `golden_plugin` calls it. One test runs at a time in
a process, so the current runs are a stack of one (of two, if a test runs pytest itself).
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from konverge.errors import ConfigurationError

__all__ = ["FOLDER", "GoldenRun", "RunningTest", "get_current_run", "read_golden"]

FOLDER = "golden"
"""The folder beside a test file that contains its golden files."""

_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=-]+")

_runs: list[GoldenRun] = []


@dataclass(frozen=True, slots=True)
class RunningTest:
    """A test as pytest identifies it.

    Attributes:
        file: The file of the test.
        name: The part of its identifier after the file, for example ``TestWeb::test_defaults[8.5.0]``.
    """

    file: Path
    name: str

    @property
    def golden(self) -> Path:
        """The default golden file: ``golden/<test file>/<test>.yaml``, beside the test file.

        Characters that are unsafe in file names become ``-``. A name that is too long is cut, and a digest keeps it
        unique.
        """
        name = _UNSAFE.sub("-", self.name.replace("::", ".")).strip("-")
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"
        return self.file.parent / FOLDER / self.file.stem / f"{name}.yaml"


@dataclass(slots=True, eq=False)
class GoldenRun:
    """Settings and results of one test run.

    Attributes:
        updates: True to write golden files instead of comparing them.
        start_folder: The working directory of the command; a test can have changed it since.
        test: The test that runs now.
        used: The golden files that tests used.
        written: The golden files that were written, each with ``new`` or ``changed``.
    """

    updates: bool = False
    start_folder: Path = field(default_factory=Path.cwd)
    test: RunningTest | None = None
    used: set[Path] = field(default_factory=set)
    written: dict[Path, str] = field(default_factory=dict)
    _texts: dict[Path, tuple[str, str]] = field(default_factory=dict)

    @contextmanager
    def run_test(self, test: RunningTest) -> Iterator[None]:
        """Make this the running test while the block runs."""
        _runs.append(self)
        self.test = test
        try:
            yield
        finally:
            self.test = None
            _runs.pop()

    def find_path(self, path: str | os.PathLike[str] | None) -> Path:
        """Return the path of a golden file: relative to the test's file, or the default file without a path.

        Raises:
            ConfigurationError: There is no path and no running test.
        """
        if self.test is not None:
            golden = self.test.golden if path is None else self.test.file.parent / path
        elif path is not None:
            golden = Path.cwd() / path
        else:
            raise ConfigurationError(
                "assert_golden: expected a path or a running test, found neither; pass a path, or load "
                'pytest_plugins = ["konverge_cluster.pytest_plugin"] in the top conftest.py'
            )
        return Path(os.path.normpath(golden))

    @property
    def update_command(self) -> str:
        """The command that updates golden files: those of the running test if there is one."""
        if self.test is None:
            return "pytest --update-golden"
        return f"pytest {shlex.quote(f'{self.format_path(self.test.file)}::{self.test.name}')} --update-golden"

    def format_path(self, path: Path) -> str:
        """Return the path relative to the working directory of the command."""
        try:
            return os.path.relpath(path, self.start_folder)
        except ValueError:  # another drive
            return str(path)

    def update(self, path: Path, text: str) -> None:
        """Write a golden file unless it contains this text already, and create its folders.

        The file is replaced atomically: another process that writes or reads it never sees a partial file.

        Raises:
            AssertionError: This run has already written another text to the file: it cannot be the golden file of both.
            ConfigurationError: The file cannot be written.
        """
        name = self.test.name if self.test is not None else "this run"
        other, written = self._texts.setdefault(path, (name, text))
        if written != text:
            raise AssertionError(
                f"{self.format_path(path)} cannot be the golden file of two assertions: {other} has written it, "
                f"and {name} renders something else; give each assert_golden its own path"
            )
        before = read_golden(path)
        if before == text:
            return
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(text, encoding="utf-8", newline="\n")
            partial.replace(path)
        except OSError as error:
            raise ConfigurationError(f"golden file {self.format_path(path)} cannot be written: {error}") from error
        self.written[path] = "new" if before is None else "changed"


def get_current_run() -> GoldenRun:
    """Return the current run; outside of tests or without the plug-in, a run that only compares."""
    return _runs[-1] if _runs else GoldenRun()


def read_golden(path: Path) -> str | None:
    """Return the content of a golden file; None if it does not exist.

    A byte order mark, Windows line ends and a missing final line feed are normalized.

    Raises:
        ConfigurationError: The file cannot be read, or is not UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"golden file {path} cannot be read: {error}") from error
    text = text.replace("\r\n", "\n")
    return text if text.endswith("\n") else f"{text}\n"
