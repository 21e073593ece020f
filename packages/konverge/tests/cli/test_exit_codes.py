"""Exit codes, and failures in one line."""

from __future__ import annotations

import click
import pytest

from konverge._internal.cli.exit_codes import ExitCode, find_exit_code, format_failure, iter_errors
from konverge.errors import (
    ConfigurationError,
    ConnectionFailedError,
    KonvergeError,
    NotFoundError,
    UnauthorizedError,
    UntrustedServerError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("no kubeconfig"), ExitCode.CONFIGURATION),
        (ConnectionFailedError("refused"), ExitCode.CLUSTER),
        (UntrustedServerError("expired"), ExitCode.CLUSTER),
        (UnauthorizedError("who are you?"), ExitCode.CLUSTER),
        (NotFoundError("no such object"), ExitCode.FAILED),
        (click.Abort(), ExitCode.INTERRUPTED),
        (ZeroDivisionError("division by zero"), ExitCode.FAILED),
    ],
)
def test_the_exit_code_tells_what_kind_of_failure_it_was(error: Exception, code: ExitCode) -> None:
    assert find_exit_code(error) == code


def test_a_group_of_tasks_fails_for_the_first_of_its_reasons() -> None:
    group = ExceptionGroup("tasks", [ExceptionGroup("inner", [ConnectionFailedError("refused")]), KonvergeError("b")])

    assert find_exit_code(group) == ExitCode.CLUSTER
    assert [str(error) for error in iter_errors(group)] == ["refused", "b"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KonvergeError("it is so"), "it is so"),
        (KonvergeError(), "KonvergeError"),
        (FileNotFoundError(2, "No such file or directory", "/x"), "/x: No such file or directory"),
        (ValueError("odd"), "ValueError: odd"),
        (click.Abort(), "interrupted"),
    ],
)
def test_a_failure_is_explained_in_one_line(error: Exception, line: str) -> None:
    assert format_failure(error) == line
