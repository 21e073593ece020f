"""Errors of an expression: in its syntax, or with the data of an evaluation."""

from __future__ import annotations

import re

from konverge.errors import ConfigurationError, KonvergeError

__all__ = ["ExpressionError", "ExpressionSyntaxError"]


class _PositionedError(KonvergeError):
    """An error at a position of an expression.

    Args:
        where: The path of the string, for example ``spec.crds.web.onReconcile[0].name``.
        line: The line in the string, from 1; 0 for the whole value.
        column: The column in the line, from 1; 0 for the whole value.
        problem: What was expected and what was found.
    """

    def __init__(self, where: str, line: int, column: int, problem: str) -> None:
        self.where = where
        self.line = line
        self.column = column
        self.problem = problem
        position = f", line {line}, column {column}" if line else ""
        super().__init__(f"{where}{position}: {problem}")


class ExpressionSyntaxError(_PositionedError, ConfigurationError):
    """An expression or a condition does not compile."""


class ExpressionError(_PositionedError):
    """An expression has no value with the given data. The message contains no value from a Secret.

    Attributes:
        absent_path: The path that is absent, if that is the reason; otherwise empty.
    """

    absent_path: str = ""

    @property
    def absent_name(self) -> str:
        """The first name of the absent path; empty if nothing is absent."""
        return re.split(r"[.\[]", self.absent_path, maxsplit=1)[0]
