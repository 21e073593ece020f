"""The error of a failed step of a pipeline."""

from __future__ import annotations

from konverge.errors import KonvergeError

__all__ = ["StepError"]


class StepError(KonvergeError):
    """An error of a step: the file's declaration does not fit the cluster or the custom resource.

    Args:
        where: The path in the file, for example ``spec.crds.website.normalize.spec.size``.
        problem: The expected value and the value that was found.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem
