"""What is wrong with an expression: its text, or the data that it met."""

from __future__ import annotations

from konverge.errors import ConfigurationError, KonvergeError

__all__ = ["ExpressionError", "ExpressionSyntaxError"]


class ExpressionSyntaxError(ConfigurationError):
    """An expression, or a condition, that cannot be compiled.

    Args:
        where: Whose text it is, for example ``spec.crds.web.onReconcile[0].name``.
        line: In the text, from 1; 0 when it is the whole value.
        column: In the line, from 1; 0 when it is the whole value.
        problem: What was expected and what was found.
    """

    def __init__(self, where: str, line: int, column: int, problem: str) -> None:
        self.where = where
        self.line = line
        self.column = column
        self.problem = problem
        super().__init__(f"{where}{_format_position(line, column)}: {problem}")


class ExpressionError(KonvergeError):
    """An expression came to no value with the data at hand. Its message shows nothing that came from a Secret.

    Args:
        where: Whose text it is.
        line: In the text, from 1; 0 when it is the whole value.
        column: In the line, from 1; 0 when it is the whole value.
        problem: What was expected and what was found.
    """

    def __init__(self, where: str, line: int, column: int, problem: str) -> None:
        self.where = where
        self.line = line
        self.column = column
        self.problem = problem
        super().__init__(f"{where}{_format_position(line, column)}: {problem}")


def _format_position(line: int, column: int) -> str:
    return f", line {line}, column {column}" if line else ""
