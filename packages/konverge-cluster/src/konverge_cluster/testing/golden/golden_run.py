"""What a run of tests does with its golden files: which test is at it, whether to write, what was used and written.

No pytest here: `konverge_cluster.testing.golden.golden_plugin` drives it. One test runs at a time in a process, so the
run that is
under way is a stack of one (of two, where a test runs pytest itself).
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
"""The folder beside a test file that holds its golden files."""

_LONGEST_NAME = 120
_UNSAFE = re.compile(r"[^A-Za-z0-9._+=-]+")

_runs: list[GoldenRun] = []


@dataclass(frozen=True, slots=True)
class RunningTest:
    """A test as pytest knows it.

    Attributes:
        file: The file that it is in.
        name: What comes behind the file in its identifier, for example ``TestWeb::test_defaults[8.5.0]``.
    """

    file: Path
    name: str

    @property
    def golden(self) -> Path:
        """Its golden file when it names none: ``golden/<test file>/<test>.yaml``, beside the test file.

        What a file name should not hold becomes ``-``; a name that is too long is cut, and a digest keeps it apart.
        """
        name = _UNSAFE.sub("-", self.name.replace("::", ".")).strip("-")
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(self.name.encode()).hexdigest()[:8]}"
        return self.file.parent / FOLDER / self.file.stem / f"{name}.yaml"


@dataclass(slots=True, eq=False)
class GoldenRun:
    """One run.

    Attributes:
        updates: Write golden files instead of comparing with them.
        start_folder: The folder in which the command was typed; a test may be in another one by now.
        test: The test that is running now.
        used: The golden files that were asked for.
        written: Those that were written, each with ``new`` or ``changed``.
    """

    updates: bool = False
    start_folder: Path = field(default_factory=Path.cwd)
    test: RunningTest | None = None
    used: set[Path] = field(default_factory=set)
    written: dict[Path, str] = field(default_factory=dict)
    _texts: dict[Path, tuple[str, str]] = field(default_factory=dict)

    @contextmanager
    def run_test(self, test: RunningTest) -> Iterator[None]:
        """Within the block, that test is the one which asserts."""
        _runs.append(self)
        self.test = test
        try:
            yield
        finally:
            self.test = None
            _runs.pop()

    def find_path(self, path: str | os.PathLike[str] | None) -> Path:
        """Where a golden file is: a relative path starts at the test's file, none at all is the test's own.

        Raises:
            ConfigurationError: There is no path, and no test is known to be running.
        """
        if self.test is not None:
            found = self.test.golden if path is None else self.test.file.parent / path
        elif path is not None:
            found = Path.cwd() / path
        else:
            raise ConfigurationError(
                "assert_golden was given no path, and no test is known to be running: give it a path, or load "
                'pytest_plugins = ["konverge_cluster.testing.pytest_plugin"] in the top conftest.py'
            )
        return Path(os.path.normpath(found))

    @property
    def update_command(self) -> str:
        """What to type to have golden files written: those of the running test, where one is known."""
        if self.test is None:
            return "pytest --update-golden"
        return f"pytest {shlex.quote(f'{self.format_path(self.test.file)}::{self.test.name}')} --update-golden"

    def format_path(self, path: Path) -> str:
        """The path as one would type it where the run was started."""
        try:
            return os.path.relpath(path, self.start_folder)
        except ValueError:  # another drive
            return str(path)

    def update(self, path: Path, text: str) -> None:
        """Write a golden file, if it does not hold that text already, and make its folders.

        The file is replaced in one step: another process that writes it too, or reads it, never meets half of it.

        Raises:
            AssertionError: This run has written another text to it before: one file cannot be the golden of both.
            ConfigurationError: It cannot be written.
        """
        name = self.test.name if self.test is not None else "this run"
        other, written = self._texts.setdefault(path, (name, text))
        if written != text:
            raise AssertionError(
                f"{self.format_path(path)} cannot be the golden file of two: {other} has written "
                f"it, and {name} renders "
                "something else; give each assert_golden a path of its own"
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
    """The run under way; one that only compares where nobody runs tests, or the plug-in is not loaded."""
    return _runs[-1] if _runs else GoldenRun()


def read_golden(path: Path) -> str | None:
    """What a golden file holds, None when there is none.

    An editor's or a checkout's habits do not count: a byte order mark, line ends of Windows, none at the end.

    Raises:
        ConfigurationError: It cannot be read, or is no UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"golden file {path} cannot be read: {error}") from error
    text = text.replace("\r\n", "\n")
    return text if text.endswith("\n") else f"{text}\n"
