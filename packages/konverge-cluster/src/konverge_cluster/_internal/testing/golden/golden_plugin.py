"""The pytest hooks of golden files: options, the running test, and the summary lines.

`pytest_plugin` registers it.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from konverge_cluster._internal.testing.golden.golden_run import FOLDER, GoldenRun, RunningTest

__all__ = ["GoldenPlugin", "add_options"]

_WRITTEN, _USED, _FOLDERS = "konverge_golden_written", "konverge_golden_used", "konverge_golden_folders"


def add_options(parser: pytest.Parser) -> None:
    """Declare the options ``--update-golden`` and ``--stale-golden``."""
    group = parser.getgroup("konverge")
    group.addoption(
        "--update-golden",
        action="store_true",
        help="write the golden files of the tests that run, instead of comparing them; deletes no file",
    )
    group.addoption(
        "--stale-golden",
        action="store_true",
        help="fail when a folder 'golden' beside a test that ran contains a YAML file that no test used; "
        "for runs of all tests",
    )


class GoldenPlugin:
    """The hooks of one run; each xdist worker has its own, and the controller merges their results."""

    def __init__(self, config: pytest.Config) -> None:
        self._finds_stale = bool(config.getoption("--stale-golden"))
        self._run = GoldenRun(bool(config.getoption("--update-golden")), config.invocation_params.dir)
        self._folders: set[Path] = set()
        self._stale: list[Path] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the running test from its setup to its teardown."""
        self._folders.add(item.path.parent / FOLDER)
        with self._run.run_test(RunningTest(item.path, item.nodeid.partition("::")[2])):
            return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Send the results to the xdist controller; find stale files if all tests passed."""
        output: dict[str, object] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_WRITTEN] = {str(path): how for path, how in self._run.written.items()}
            output[_USED] = [str(path) for path in self._run.used]
            output[_FOLDERS] = [str(path) for path in self._folders]
        elif self._finds_stale and exitstatus == pytest.ExitCode.OK:
            present = {path for folder in self._folders for path in folder.rglob("*.yaml")}
            self._stale = sorted(present - self._run.used)
            if self._stale:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Merge the files that a worker used and wrote."""
        output: dict[str, Any] = getattr(node, "workeroutput", {})
        self._run.written.update({Path(path): how for path, how in output.get(_WRITTEN, {}).items()})
        self._run.used.update(map(Path, output.get(_USED, ())))
        self._folders.update(map(Path, output.get(_FOLDERS, ())))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the written files and the files that no test used."""
        for path, how in sorted(self._run.written.items()):
            terminalreporter.write_line(f"konverge: wrote {self._run.format_path(path)} ({how})")
        for path in self._stale:
            terminalreporter.write_line(f"konverge: no test used {self._run.format_path(path)}; delete it")
