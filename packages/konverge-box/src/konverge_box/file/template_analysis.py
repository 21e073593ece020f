"""The border to the language of expressions: a text in, the names that it reads out; what is wrong with conditions.

The language is imported where it is used: it comes with an extra, which a file without expressions does not need.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge_box.file.validation_errors import Path, format_path

__all__ = ["TemplateSyntaxError", "find_condition_error", "find_field_paths", "find_read_paths", "uses_randomness"]


class TemplateSyntaxError(Exception):
    """A text that is no template.

    Args:
        message: What is wrong with it.
    """


def find_read_paths(text: str, path: Path) -> frozenset[tuple[str, ...]]:
    """The paths that the expressions of a text read, for example ``("spec", "replicas")``.

    Raises:
        TemplateSyntaxError: An expression cannot be compiled.
    """
    from konverge_box.expressions import ExpressionSyntaxError, compile_expression

    try:
        return compile_expression(text, where=format_path(path)).list_read_paths()
    except ExpressionSyntaxError as error:
        raise TemplateSyntaxError(f"no expression: {error.problem}") from error


def find_field_paths(field: str, path: Path) -> frozenset[tuple[str, ...]]:
    """The paths that the ``field`` of a condition or rule reads: itself, or what its expression does.

    Raises:
        TemplateSyntaxError: It is neither a path nor an expression.
    """
    from konverge_box.expressions import ExpressionSyntaxError, compile_field

    try:
        return compile_field(field, where=format_path(path)).list_read_paths()
    except ExpressionSyntaxError as error:
        raise TemplateSyntaxError(f"no path and no expression: {error.problem}") from error


def uses_randomness(text: str, path: Path) -> bool:
    """Tell whether the expressions of a text draw random values.

    Raises:
        TemplateSyntaxError: An expression cannot be compiled.
    """
    if "random" not in text:  # so are all functions called that do
        return False
    from konverge_box.expressions import ExpressionSyntaxError, compile_expression

    try:
        return "randomness" in compile_expression(text, where=format_path(path)).list_needs()
    except ExpressionSyntaxError as error:
        raise TemplateSyntaxError(f"no expression: {error.problem}") from error


def find_condition_error(declared: Mapping[str, Any], *, is_rule: bool) -> tuple[str, str] | None:
    """What is wrong with a condition, or with the operator of a rule, apart from its expressions; None for nothing.

    Returns:
        The key that it is about, empty for all of it; and what was expected and found.
    """
    from konverge_box.expressions import ExpressionSyntaxError, compile_check, compile_condition

    try:
        (compile_check if is_rule else compile_condition)(declared, where="")
    except ExpressionSyntaxError as error:
        if error.line == 0:
            return error.where.removeprefix("."), error.problem
    return None
