"""Exit codes of the commands, and failures as one line."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import click

from konverge.errors import (
    ConfigurationError,
    ConnectionFailedError,
    ForbiddenError,
    KonvergeError,
    StartError,
    UnauthorizedError,
    iter_causes,
)

__all__ = ["ExitCode", "find_exit_code", "find_refusal", "format_failure", "iter_errors"]


class ExitCode(IntEnum):
    """Exit codes of ``konverge``; 2 is click's code for a command line that it cannot parse.

    `TROUBLE` replaces `FAILED` for commands whose code 1 has another meaning. `LATER`: the requested content may be
    available later. `ALTERED`: the content differs from the expected one.
    """

    DONE = 0
    FAILED = 1
    USAGE = 2
    CONFIGURATION = 3
    CLUSTER = 4
    TROUBLE = 5
    LATER = 6
    ALTERED = 7
    INTERRUPTED = 130


def iter_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors of an exception group, in order; another error yields itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from iter_errors(inner)
    else:
        yield error


def find_exit_code(error: BaseException) -> ExitCode:
    """Return the exit code for the error of a command; of several errors, the code of the first."""
    match next(iter_errors(error)):
        case StartError(__cause__=cause) if cause is not None:
            return find_exit_code(cause)
        case ConfigurationError():
            return ExitCode.CONFIGURATION
        case ConnectionFailedError() | UnauthorizedError() | ForbiddenError():
            return ExitCode.CLUSTER
        case KeyboardInterrupt() | click.Abort():
            return ExitCode.INTERRUPTED
    return ExitCode.FAILED


def find_refusal(error: BaseException) -> BaseException | None:
    """Return the cause of an error that is a refusal by the cluster; None if the author's code is the cause."""
    for failure in iter_errors(error):
        for cause in iter_causes(failure):
            if find_exit_code(cause) is ExitCode.CLUSTER:
                return cause
    return None


def format_failure(error: BaseException) -> str:
    """Return the message of an error for the user; errors that are not konverge's include their type."""
    if isinstance(error, KonvergeError):
        return str(error) or type(error).__name__
    if isinstance(error, click.Abort):
        return "interrupted"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
