"""Golden files in a test: equal, different, absent, written, stale."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge_cluster._internal.testing.golden.golden_run import GoldenRun, RunningTest
from konverge_cluster.testing import assert_golden, compare_golden, serialize

TESTS = """
import pytest
from konverge_cluster.testing import assert_golden

def config(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}, "data": data}

def test_defaults():
    assert_golden(config(size="2"))

@pytest.mark.parametrize("size", ["1/2", "3"])
def test_sizes(size):
    assert_golden(config(size=size))

class TestNamed:
    def test_named(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        assert_golden(config(), "golden/named.yaml")
"""
FILES = [
    "golden/named.yaml",
    "golden/test_web/test_defaults.yaml",
    "golden/test_web/test_sizes-1-2.yaml",
    "golden/test_web/test_sizes-3.yaml",
]


def config(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}, "data": data}


def secret(value: str) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "stringData": {"password": value}}


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """Create a project with tests that use golden files."""
    pytester.makeconftest('pytest_plugins = ["konverge_cluster.pytest_plugin"]')
    pytester.mkdir("tests").joinpath("test_web.py").write_text(TESTS)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def list_output_lines(result: pytest.RunResult) -> list[str]:
    return [line.removeprefix("konverge: ") for line in result.outlines if line.startswith("konverge: ")]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in (folder / "golden").rglob("*") if path.is_file())


def test_a_missing_file_is_said_with_the_command_that_makes_it(project: pytest.Pytester) -> None:
    result = run(project, "-k", "sizes or named")

    result.assert_outcomes(failed=3, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "E*AssertionError: there is no golden file tests/golden/test_web/test_sizes-1-2.yaml",
            "E*commit it: pytest 'tests/test_web.py::test_sizes[[]1/2]' --update-golden",
            "E*commit it: pytest tests/test_web.py::TestNamed::test_named --update-golden",
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_update_makes_folders_and_files_and_says_which(project: pytest.Pytester, workers: list[str]) -> None:
    result = run(project, "--update-golden", *workers)

    result.assert_outcomes(passed=4)
    assert list_output_lines(result) == [f"wrote tests/{file} (new)" for file in FILES]
    assert files(project.path / "tests") == FILES
    assert (project.path / "tests/golden/named.yaml").read_text() == serialize(config())
    run(project).assert_outcomes(passed=4)


def test_the_command_of_the_message_works(project: pytest.Pytester) -> None:
    result = run(project, "tests/test_web.py::test_sizes[1/2]", "--update-golden")

    assert list_output_lines(result) == ["wrote tests/golden/test_web/test_sizes-1-2.yaml (new)"]


@pytest.mark.slow
def test_update_writes_what_changed_alone_and_deletes_nothing(project: pytest.Pytester) -> None:
    run(project, "--update-golden")
    folder = project.path / "tests"
    unused = folder / "golden" / "test_web" / "test_gone.yaml"
    unused.write_text("")
    untouched = (folder / FILES[0]).stat().st_mtime_ns
    (folder / FILES[1]).write_text("something else\n")

    assert list_output_lines(run(project, "--update-golden")) == [f"wrote tests/{FILES[1]} (changed)"]
    assert unused.exists()
    assert (folder / FILES[0]).stat().st_mtime_ns == untouched
    assert list_output_lines(run(project, "--update-golden")) == []


def test_a_difference_is_shown_with_three_lines_around_it(project: pytest.Pytester) -> None:
    run(project, "--update-golden")
    golden = project.path / "tests" / FILES[1]
    golden.write_text(golden.read_text().replace("'2'", "'1'"))

    result = run(project)

    result.assert_outcomes(passed=3, failed=1)
    error_lines = [line.removeprefix("E").strip() for line in result.outlines if line.startswith("E ")]
    assert error_lines == [
        f"AssertionError: the rendered objects differ from the golden file tests/{FILES[1]}",
        f"--- tests/{FILES[1]} (golden)",
        "+++ rendered",
        "@@ -5,4 +5,4 @@",
        "name: web",
        "namespace: default",
        "data:",
        "-  size: '1'",
        "+  size: '2'",
        "if the change is intended: pytest tests/test_web.py::test_defaults --update-golden",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["one process", "workers"])
def test_files_that_no_test_asks_for_are_found_on_request(project: pytest.Pytester, workers: list[str]) -> None:
    run(project, "--update-golden")
    (project.path / "tests/golden/test_web/test_gone.yaml").write_text("")

    result = run(project, "--stale-golden", *workers)

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert list_output_lines(result) == ["no test used tests/golden/test_web/test_gone.yaml; delete it"]
    assert run(project).ret == 0


def test_a_failed_run_calls_no_file_stale(project: pytest.Pytester) -> None:
    run(project, "--update-golden")
    (project.path / "tests/golden/test_web/test_gone.yaml").write_text("")
    (project.path / "tests" / FILES[0]).unlink()

    result = run(project, "--stale-golden")

    result.assert_outcomes(passed=3, failed=1)
    assert list_output_lines(result) == []


def test_one_file_is_not_the_golden_of_two(project: pytest.Pytester) -> None:
    test = "def test_twice():\n    assert_golden(config(size='1'))\n    assert_golden(config(size='2'))\n"
    (project.path / "tests/test_web.py").write_text(TESTS + test)

    result = run(project, "--update-golden", "-k", "twice")

    result.assert_outcomes(failed=1, deselected=4)
    result.stdout.fnmatch_lines(
        ["E*test_twice.yaml cannot be the golden file of two assertions: test_twice has written it*something else*"]
    )


@pytest.mark.slow
def test_without_the_plug_in_a_path_is_enough_and_no_path_is_said(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "from konverge_cluster.testing import assert_golden, serialize\n"
        "obj = {'apiVersion': 'v1', 'kind': 'Widget', 'metadata': {'name': 'a'}}\n"
        "def test_path(tmp_path):\n"
        "    (tmp_path / 'a.yaml').write_text(serialize(obj))\n"
        "    assert_golden(obj, tmp_path / 'a.yaml')\n"
        "def test_no_path():\n"
        "    assert_golden(obj)\n"
    )

    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")  # this process has loaded the plug-in

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["E*ConfigurationError: assert_golden: expected a path or a running test*pytest_plugin*"]
    )


@pytest.mark.parametrize("change", [b"\xef\xbb\xbf%s", b"%s\n"], ids=["byte order mark", "as it is"])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_what_editors_and_checkouts_do_to_a_file_is_no_difference(
    change: bytes, line_end: bytes, tmp_path: Path
) -> None:
    golden = tmp_path / "web.yaml"
    golden.write_bytes((change % serialize(config(a="x\ny\n", b="é")).encode().rstrip()).replace(b"\n", line_end))

    assert compare_golden(config(a="x\ny\n", b="é"), golden) == ""
    assert compare_golden(config(a="x\nz\n", b="é"), golden) != ""


def test_a_file_that_is_not_there_differs_in_everything(tmp_path: Path) -> None:
    difference = compare_golden(config(), tmp_path / "web.yaml")

    assert difference.startswith("--- /dev/null\n+++ rendered\n@@ -0,0 +1,")
    assert "+kind: ConfigMap\n" in difference


def test_a_difference_shows_no_value_of_a_secret_that_the_file_holds(tmp_path: Path) -> None:
    golden = tmp_path / "web.yaml"
    golden.write_text(serialize(secret("hunter2"), reveal_secrets=True))

    assert compare_golden(secret("other"), golden) == (
        "the file contains values of Secrets, which the diff hides; remove them from the file\n"
    )
    difference = compare_golden([secret("other"), config()], golden)
    assert "+kind: ConfigMap" in difference
    assert "hunter2" not in difference
    golden.write_text("kind: Secret\ndata: {hunter2\n")
    assert "hunter2" not in compare_golden(secret("other"), golden)


def test_revealed_secrets_are_compared(tmp_path: Path) -> None:
    golden = tmp_path / "web.yaml"
    golden.write_text(serialize(secret("one"), reveal_secrets=True))

    assert compare_golden(secret("one"), golden, reveal_secrets=True) == ""
    assert "+  password: two" in compare_golden(secret("two"), golden, reveal_secrets=True)
    with pytest.raises(AssertionError, match=re.escape("+  password: two")):
        assert_golden(secret("two"), golden, reveal_secrets=True)


def test_what_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_bytes(b"\xff")

    with pytest.raises(ConfigurationError, match="web.yaml cannot be read: .*utf-8"):
        compare_golden(config(), tmp_path / "web.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read: .*directory"):
        compare_golden(config(), tmp_path)


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / f".web.yaml.{os.getpid()}").mkdir()  # the path of the partial file

    with pytest.raises(ConfigurationError, match="web.yaml cannot be written: "):
        GoldenRun(updates=True).update(tmp_path / "web.yaml", "text\n")


def test_names_that_differ_make_files_that_differ_and_that_a_file_system_takes() -> None:
    long = [RunningTest(Path("test_web.py"), f"test_x[{'é/long' * 100}{end}]").golden.name for end in "ab"]

    assert long[0] != long[1]
    assert all(len(os.fsencode(name)) < 200 for name in long)
