"""How a command ends: the exit codes, and a failure as one line."""

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
    """What ``konverge`` answers to its caller; 2 is click's, for a command that cannot be parsed.

    `TROUBLE` is what `FAILED` is elsewhere, for commands whose 1 says something else. `LATER`: what was asked for may
    be there later. `ALTERED`: it is not what it has to be.
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
    """The errors that a group of tasks ended with, one by one, in order; an error that is no group is its own."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from iter_errors(inner)
    else:
        yield error


def find_exit_code(error: BaseException) -> ExitCode:
    """The exit code for an error that ended a command; of several, the one of the first."""
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
    """What the cluster refused, where an error comes from that: the user's access, not the author's code."""
    for failure in iter_errors(error):
        for cause in iter_causes(failure):
            if find_exit_code(cause) is ExitCode.CLUSTER:
                return cause
    return None


def format_failure(error: BaseException) -> str:
    """What to tell the user: our own errors speak for themselves, any other shows what it is."""
    if isinstance(error, KonvergeError):
        return str(error) or type(error).__name__
    if isinstance(error, click.Abort):
        return "interrupted"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
