"""The conditions of anything in the file that may have some."""

from __future__ import annotations

from konverge.box.expressions import Conditions, compile_conditions
from konverge.box.file import Conditional, ValidationRule

__all__ = ["conditions_of"]


def conditions_of(declared: Conditional | ValidationRule, where: str) -> Conditions:
    """Its ``when`` and ``or``, compiled.

    Args:
        declared: A part of a loaded file.
        where: Its path in the file.

    Raises:
        konverge.box.expressions.ExpressionSyntaxError: What loading would have refused.
    """
    written = {
        "when": [condition.declared() for condition in declared.when],
        "or": [condition.declared() for condition in declared.alternatives],
    }
    return compile_conditions(written, where=where)
