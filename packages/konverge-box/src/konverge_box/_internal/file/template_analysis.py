"""The border to the expression language: the names that a string reads, and the errors of conditions.

The language is imported on use: it comes with an extra, which a file without expressions does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box._internal.file.validation_errors import Path, format_path

__all__ = ["TemplateSyntaxError", "find_condition_error", "find_field_paths", "find_read_paths", "uses_randomness"]


class TemplateSyntaxError(Exception):
    """A string is not a valid template.

    Args:
        message: The syntax error.
    """


def find_read_paths(text: str, path: Path) -> frozenset[tuple[str, ...]]:
    """Return the paths that the expressions of a string read, for example ``("spec", "replicas")``.

    Raises:
        TemplateSyntaxError: An expression does not compile.
    """
    from konverge_box._internal.expressions import ExpressionSyntaxError, compile_expression

    try:
        return compile_expression(text, where=format_path(path)).list_read_paths()
    except ExpressionSyntaxError as error:
        raise TemplateSyntaxError(f"invalid expression: {error.problem}") from error


def find_field_paths(field: str, path: Path) -> frozenset[tuple[str, ...]]:
    """Return the paths that the ``field`` of a condition or rule reads: the path itself, or those of its expression.

    Raises:
        TemplateSyntaxError: The string is neither a path nor an expression.
    """
    from konverge_box._internal.expressions import ExpressionSyntaxError, compile_field

    try:
        return compile_field(field, where=format_path(path)).list_read_paths()
    except ExpressionSyntaxError as error:
        raise TemplateSyntaxError(f"neither a path nor an expression: {error.problem}") from error


def uses_randomness(text: str, path: Path) -> bool:
    """Tell whether the expressions of a string generate random values.

    Raises:
        TemplateSyntaxError: An expression does not compile.
    """
    if "random" not in text:  # all functions that do contain this word
        return False
    from konverge_box._internal.expressions import ExpressionSyntaxError, compile_expression

    try:
        return "randomness" in compile_expression(text, where=format_path(path)).list_needs()
    except ExpressionSyntaxError as error:
        raise TemplateSyntaxError(f"invalid expression: {error.problem}") from error


def find_condition_error(declared: Mapping[str, Any], *, is_rule: bool) -> tuple[str, str] | None:
    """Return the error of a condition, or of a rule's operator, apart from its expressions; None if there is none.

    Returns:
        The key of the error, empty for the whole condition, and the message with the expected and the found value.
    """
    from konverge_box._internal.expressions import ExpressionSyntaxError, compile_check, compile_condition

    try:
        (compile_check if is_rule else compile_condition)(declared, where="")
    except ExpressionSyntaxError as error:
        if error.line == 0:
            return error.where.removeprefix("."), error.problem
    return None
