"""What a step of a pipeline fails with."""

from __future__ import annotations

from konverge.errors import KonvergeError

__all__ = ["StepError"]


class StepError(KonvergeError):
    """A step cannot do what the file says, with what the cluster and the custom resource have.

    Args:
        where: The path in the file, for example ``spec.crds.website.normalize.spec.size``.
        problem: What was expected and what was found.
    """

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where
        self.problem = problem
