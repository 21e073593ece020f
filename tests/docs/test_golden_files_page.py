"""The examples on the page about golden files work exactly as printed."""

from __future__ import annotations

import runpy

import pytest

from konverge_cluster._internal.testing.golden.golden_run import GoldenRun, RunningTest
from konverge_cluster.testing import load_matrix
from tests.docs.pages import find_code_blocks, read_page

PAGE = "docs/golden-files.md"


@pytest.fixture
def page_files(pytester: pytest.Pytester) -> pytest.Pytester:
    """Save the page's files as its reader would."""
    web, conftest, test_web, test_matrix = find_code_blocks(PAGE, "python")
    pytester.makepyfile(web=web, conftest=conftest, test_web=test_web, test_matrix=test_matrix)
    return pytester


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_update_writes_the_files_that_the_page_shows(page_files: pytest.Pytester) -> None:
    run(page_files, "--update-golden").assert_outcomes(passed=11)

    (matrix,) = [block for block in find_code_blocks(PAGE, "text") if "manifest" in block]
    written = sorted(str(path.relative_to(page_files.path)) for path in page_files.path.rglob("*.yaml"))
    assert written == [*matrix.split(), "golden/test_web/test_defaults.yaml"]
    assert (page_files.path / "golden/test_web/test_defaults.yaml").read_text() == find_code_blocks(PAGE, "yaml")[0]
    run(page_files, "--stale-golden").assert_outcomes(passed=11)


def test_a_version_that_leaves_its_regime_is_explained_as_the_page_shows(page_files: pytest.Pytester) -> None:
    run(page_files, "--update-golden")
    web = page_files.path / "web.py"
    web.write_text(web.read_text().replace('"<8.5"', '"<8.4.1"'))

    result = run(page_files, "-k", "small-8.4.1")

    after = read_page(PAGE).partition("`<8.4.1`:\n\n  ```text\n")[2]
    message = [line.strip() for line in after.partition("  ```")[0].splitlines()]
    assert len(message) == 2
    result.stdout.fnmatch_lines([f"E*{line}" for line in message])


def test_the_file_that_the_page_shows_is_its_matrix(
    page_files: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(page_files, "--update-golden")
    web = runpy.run_path(str(page_files.path / "web.py"))
    (page_files.path / "matrix.yaml").write_text(find_code_blocks(PAGE, "yaml")[1])

    matrix = load_matrix(
        page_files.path / "matrix.yaml", lambda version, spec: web["web"](version, web["Spec"](**spec))
    )

    matrix.assert_complete()
    with GoldenRun().run_test(RunningTest(page_files.path / "test_matrix.py", "test")):
        for case in matrix.cases():
            case.check()
