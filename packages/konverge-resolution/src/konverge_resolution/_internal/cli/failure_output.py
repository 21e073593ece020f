"""Failures of ``konverge resolve`` for machines: an exit code for each reason, and a JSON record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from konverge._internal.cli.exit_codes import ExitCode, find_exit_code, format_failure, iter_errors
from konverge.errors import ConfigurationError, ForbiddenError, KonvergeError, UnauthorizedError
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import REASON_TRAITS, Fault, Reason

__all__ = [
    "EXIT_CODES",
    "build_failure_record",
    "build_unexpected_error",
    "build_usage_record",
    "find_failure_code",
    "find_reason",
]

_USAGE = "InvalidUsage"
"""Reason of an invalid command line; no resolution has it."""

EXIT_CODES: Mapping[Reason, ExitCode] = {
    Reason.INVALID_PARAMETERS: ExitCode.FAILED,
    Reason.RESOLVER_NOT_AVAILABLE: ExitCode.CONFIGURATION,
    Reason.INVALID_CONFIGURATION: ExitCode.CONFIGURATION,
    Reason.DENIED: ExitCode.CONFIGURATION,
    Reason.AUTHENTICATION_REQUIRED: ExitCode.FAILED,
    Reason.NOT_FOUND: ExitCode.FAILED,
    Reason.DIGEST_MISMATCH: ExitCode.ALTERED,
    Reason.SIGNATURE_INVALID: ExitCode.ALTERED,
    Reason.UNSUPPORTED_CONTENT: ExitCode.FAILED,
    Reason.TOO_LARGE: ExitCode.FAILED,
    Reason.UNREACHABLE: ExitCode.LATER,
    Reason.RATE_LIMITED: ExitCode.LATER,
    Reason.TIMED_OUT: ExitCode.LATER,
    Reason.INTERNAL: ExitCode.CONFIGURATION,
}
"""Exit codes by reason; `docs/command-line.md` has the same table."""


def find_reason(error: KonvergeError) -> Reason:
    """Return the reason word of an error; a failure of the cluster's API server has one too."""
    match error:
        case ResolutionError():
            return error.reason
        case ConfigurationError():
            return Reason.INVALID_CONFIGURATION
        case UnauthorizedError():
            return Reason.AUTHENTICATION_REQUIRED
        case ForbiddenError():
            return Reason.DENIED
    return Reason.UNREACHABLE if find_exit_code(error) is ExitCode.CLUSTER else Reason.INTERNAL


def find_failure_code(error: KonvergeError) -> ExitCode:
    """Return the exit code of an error: that of its reason, or 4 for a failure of the API server."""
    code = find_exit_code(error)
    return EXIT_CODES[find_reason(error)] if code is ExitCode.FAILED else code


def build_unexpected_error(error: BaseException) -> ResolutionError:
    """Return the failure for an error that nobody expected, without its text, which can contain anything."""
    names = ", ".join(dict.fromkeys(type(each).__name__ for each in iter_errors(error)))
    return ResolutionError(
        Reason.INTERNAL, f"unexpected error {names}; run the command again with --verbose for its traceback"
    )


def build_failure_record(error: KonvergeError, resolver: str) -> bytes:
    """Return the JSON output for a failure.

    Args:
        error: The error with the message for the user.
        resolver: The resolver of the command.
    """
    reason = find_reason(error)
    traits = REASON_TRAITS[reason]
    record: dict[str, Any] = {
        "reason": str(reason),
        "message": format_failure(error),
        "fault": str(traits.fault),
        "isTransient": traits.is_transient,
        "retryAfterSeconds": error.retry_after_seconds if isinstance(error, ResolutionError) else None,
        "exitCode": int(find_failure_code(error)),
    }
    return _encode_record(record, resolver)


def build_usage_record(message: str, resolver: str) -> bytes:
    """Return the JSON output for an invalid command line, in the same form.

    Args:
        message: The message for the user.
        resolver: The resolver as the command line names it; empty for none.
    """
    record: dict[str, Any] = {
        "reason": _USAGE,
        "message": message,
        "fault": str(Fault.USER),
        "isTransient": False,
        "retryAfterSeconds": None,
        "exitCode": int(ExitCode.USAGE),
    }
    return _encode_record(record, resolver)


def _encode_record(record: Mapping[str, Any], resolver: str) -> bytes:
    return f"{json.dumps({'resolver': resolver, 'error': record}, indent=2)}\n".encode()
