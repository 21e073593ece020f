"""What a call can fail with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box.steps import StepError

__all__ = ["CallAttemptError", "CallError"]


class CallError(StepError):
    """Calls failed that must not.

    Args:
        where: The path in the file.
        problem: What each that failed says.
        results: The results of all calls of the step, as expressions know them: of those that failed with ``error``, of
            those whose turn did not come as of those that were skipped.
    """

    def __init__(self, where: str, problem: str, results: Mapping[str, Any]) -> None:
        super().__init__(where, problem)
        self.results = dict(results)


class CallAttemptError(Exception):
    """One attempt came to nothing. Its text shows nothing that came from a Secret.

    Args:
        problem: What was expected and what was found.
        is_transient: Whether the same request may get another answer.
    """

    def __init__(self, problem: str, *, is_transient: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.is_transient = is_transient
