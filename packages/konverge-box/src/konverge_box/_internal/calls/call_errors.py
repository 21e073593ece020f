"""The errors of external calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box._internal.steps import StepError

__all__ = ["CallAttemptError", "CallError"]


class CallError(StepError):
    """An error of calls without ``continueOnError``.

    Args:
        where: The path in the file.
        problem: The errors of the failed calls.
        results: The results of all calls of the step, as expressions see them. Failed calls have an ``error``. Calls
            that were not reached have the result of a skipped call.
    """

    def __init__(self, where: str, problem: str, results: Mapping[str, Any]) -> None:
        super().__init__(where, problem)
        self.results = dict(results)


class CallAttemptError(Exception):
    """An error of one attempt. Its text contains no value of a Secret.

    Args:
        problem: The expected value and the value that was found.
        is_transient: Tells whether a retry of the same request can succeed.
    """

    def __init__(self, problem: str, *, is_transient: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_transient = is_transient
