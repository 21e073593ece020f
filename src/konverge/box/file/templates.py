"""The border to the language of expressions: a text in, the names that it reads out; what is wrong with conditions.

The language is imported where it is used: it comes with an extra, which a file without expressions does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.box.file.mistakes import Path, format_path

__all__ = ["SyntaxProblemError", "condition_mistake", "draws", "names_of_field", "names_read"]


class SyntaxProblemError(Exception):
    """A text that is no template.

    Args:
        message: What is wrong with it.
    """


def names_read(text: str, path: Path) -> frozenset[tuple[str, ...]]:
    """The paths that the expressions of a text read, for example ``("spec", "replicas")``.

    Raises:
        SyntaxProblemError: An expression cannot be compiled.
    """
    from konverge.box.expressions import ExpressionSyntaxError, compile_expression

    try:
        return compile_expression(text, where=format_path(path)).names()
    except ExpressionSyntaxError as error:
        raise SyntaxProblemError(f"no expression: {error.problem}") from error


def names_of_field(field: str, path: Path) -> frozenset[tuple[str, ...]]:
    """The paths that the ``field`` of a condition or rule reads: itself, or what its expression does.

    Raises:
        SyntaxProblemError: It is neither a path nor an expression.
    """
    from konverge.box.expressions import ExpressionSyntaxError, compile_field

    try:
        return compile_field(field, where=format_path(path)).names()
    except ExpressionSyntaxError as error:
        raise SyntaxProblemError(f"no path and no expression: {error.problem}") from error


def draws(text: str, path: Path) -> bool:
    """Tell whether the expressions of a text draw random values.

    Raises:
        SyntaxProblemError: An expression cannot be compiled.
    """
    if "random" not in text:  # so are all functions called that do
        return False
    from konverge.box.expressions import ExpressionSyntaxError, compile_expression

    try:
        return "randomness" in compile_expression(text, where=format_path(path)).needs()
    except ExpressionSyntaxError as error:
        raise SyntaxProblemError(f"no expression: {error.problem}") from error


def condition_mistake(declared: Mapping[str, Any], *, is_rule: bool) -> tuple[str, str] | None:
    """What is wrong with a condition, or with the operator of a rule, apart from its expressions; None for nothing.

    Returns:
        The key that it is about, empty for all of it; and what was expected and found.
    """
    from konverge.box.expressions import ExpressionSyntaxError, compile_check, compile_condition

    try:
        (compile_check if is_rule else compile_condition)(declared, where="")
    except ExpressionSyntaxError as error:
        if error.line == 0:
            return error.where.removeprefix("."), error.problem
    return None
