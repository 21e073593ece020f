"""The plug-in without the real cluster, and its counts."""

from __future__ import annotations

import pytest

CASES = """
import pytest

@pytest.mark.parametrize("kind", [
    pytest.param("embedded", marks=pytest.mark.embedded),
    pytest.param("real", marks=pytest.mark.real),
])
@pytest.mark.parametrize("case", ["a", "b"])
def test_case(kind, case):
    pass
"""
ABSENT = "has no etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kubectl"


@pytest.fixture
def cases(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(pytester.mkdir("no-programs")))
    monkeypatch.delenv("KONVERGE_REQUIRE_REAL", raising=False)
    monkeypatch.delenv("CI", raising=False)
    pytester.makeconftest('pytest_plugins = ["konverge_cluster.pytest_plugin"]')
    pytester.makepyfile(CASES)
    return pytester


def run(pytester: pytest.Pytester, *arguments: str) -> tuple[int, list[str]]:
    """Return the exit code, and the lines that the plug-in printed (errors go to the other stream)."""
    result = pytester.runpytest_inprocess(*arguments, "-p", "no:cacheprovider")
    printed = [line for line in result.outlines + result.errlines if "konverge: " in line or ABSENT in line]
    return int(result.ret), printed


def test_without_programs_real_cases_are_left_out_and_one_line_says_so(cases: pytest.Pytester) -> None:
    exit_code, printed = run(cases)

    assert exit_code == 0
    assert printed[0] == "konverge: 2 on the embedded cluster, 0 on the real cluster"
    assert len(printed) == 2
    assert printed[1].startswith("konverge: left out 2 on the real cluster: KUBEBUILDER_ASSETS")
    assert ABSENT in printed[1]
    assert "make control-plane" in printed[1]


@pytest.mark.slow
def test_the_line_is_there_once_with_several_workers(cases: pytest.Pytester) -> None:
    _, printed = run(cases, "-n", "2")

    assert [ABSENT in line for line in printed] == [False, True]


def test_nothing_is_missed_where_nothing_real_was_asked_for(cases: pytest.Pytester) -> None:
    exit_code, printed = run(cases, "-m", "not real")

    assert exit_code == 0
    assert printed == ["konverge: 2 on the embedded cluster, 0 on the real cluster"]


def test_a_run_of_nothing_but_left_out_cases_has_not_failed(cases: pytest.Pytester) -> None:
    exit_code, printed = run(cases, "-m", "real")

    assert exit_code == 0
    assert printed[0].startswith("konverge: left out 2 on the real cluster")


@pytest.mark.parametrize(("variable", "value"), [("KONVERGE_REQUIRE_REAL", "1"), ("CI", "true")])
def test_where_the_real_cluster_is_required_its_absence_is_an_error(
    cases: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    exit_code, printed = run(cases)

    assert exit_code == pytest.ExitCode.USAGE_ERROR
    assert len(printed) == 1
    assert printed[0].startswith("ERROR: the real cluster is required, and KUBEBUILDER_ASSETS")
