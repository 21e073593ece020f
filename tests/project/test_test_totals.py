"""The last lines of ``make test``: the results of all tests, and the cases that were left out with their reasons."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "test_totals.py"

CASES = """
import pytest
from tests.database_servers import skip_or_fail

def test_that_passes():
    pass

@pytest.mark.parametrize("number", range(3))
def test_that_needs_a_server(number):
    skip_or_fail("redis-server" if number else "sshd")

@pytest.mark.xfail
def test_that_is_expected_to_fail():
    raise AssertionError
"""


def totals(*files: Path) -> list[str]:
    done = subprocess.run([sys.executable, TOOL, *files], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.splitlines()


def test_what_is_left_out_is_named_with_the_command_that_brings_it(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KONVERGE_REQUIRE_REAL", raising=False)
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    pytester.makepyfile(test_cases=CASES)
    file = pytester.path / "fast.xml"
    pytester.runpytest(f"--junitxml={file}", "-p", "no:cacheprovider")

    first, *rest = totals(file, file)

    assert first.startswith("All tests: 2 passed, 0 failed, 6 left out, 2 failed as expected in ")
    assert rest == [
        "Left out, 4: redis-server is not installed (make servers installs it)",
        *["  test_cases::test_that_needs_a_server[1]"] * 2,
        *["  test_cases::test_that_needs_a_server[2]"] * 2,
        "Left out, 2: sshd is not installed (make servers installs it)",
        *["  test_cases::test_that_needs_a_server[0]"] * 2,
    ]


def test_a_real_cluster_that_is_absent_is_said_with_what_brings_it(tmp_path: Path) -> None:
    file = tmp_path / "real.xml"
    file.write_text('<testsuites><testsuite tests="0" failures="0" errors="0" skipped="0" time="1"/></testsuites>')

    *_, last = totals(file)

    assert last.startswith("None of the cases of the real cluster ran. make control-plane builds it")


def test_of_very_many_only_some_are_named(tmp_path: Path) -> None:
    case = '<testcase classname="a" name="b"><skipped type="pytest.skip" message="no"/></testcase>'
    file = tmp_path / "fast.xml"
    file.write_text(f'<testsuites><testsuite tests="50" skipped="50" time="1">{case * 50}</testsuite></testsuites>')

    lines = totals(file)

    assert lines[1] == "Left out, 50: no"
    assert lines[-1] == "  and 10 more"
